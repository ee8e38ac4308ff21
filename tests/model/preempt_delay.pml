/* SPDX-License-Identifier: MIT */
/*
 * Why a preemption delay neither loses nor holds back a real-time wake-up.
 *
 * The series takes back a pending reschedule. That is safe only because of how four things
 * play together, and this model has exactly these: the run queue lock, the two forms of the
 * reschedule request (TIF_NEED_RESCHED, and the copy folded into the preempt count), the rule
 * by which resched_curr() spares an interprocessor interrupt, and a timer with an absolute
 * expiry. Each step names the kernel function it stands for. Interrupts strike between any
 * two steps of the thread while they are on and at none while they are off; other CPUs take
 * a step whenever they like.
 *
 * What must hold (process monitor, the assertion in preempt_delay_grant(), the ltl formula):
 *   held_back	never is the thread in user mode while an RT task waits for its CPU and
 *		no interrupt is on its way
 *   rt_runs	a woken RT task gets the CPU as soon as the rest of the world is silent: no more
 *		interrupts, wake-ups, ticks, system calls, and a clock that stands still, so that it
 *		can not be the end of a delay that lets the task run
 *   outlasts	a reschedule that was taken back is waited for until the expiry of the grant,
 *		not longer, however often the delay was kept. A preemptible kernel may have acted on
 *		the expiry by picking the thread again; then it still counts as granted, but nothing
 *		is taken back any more
 *   had_one	no second grant without a pass through schedule() in between
 *   folded	the folded bit is never set alone: the next preempt_enable() would call
 *		schedule() although the reschedule was taken back
 *   stray	in user mode the word says what the kernel thinks, a delay is one of this stay
 *		on the CPU, and the timer runs only for a delay
 *
 * PREEMPTION selects a kernel that preempts itself (PREEMPT, PREEMPT_RT), otherwise it is one
 * that does not (NONE, VOLUNTARY). Each of these definitions breaks one thing, and must be
 * found out:
 *   DECIDE_WITHOUT_LOCK	look for RT tasks and clear the request without the lock
 *   KEEP_FOLDED_BIT		clear TIF_NEED_RESCHED only
 *   RELATIVE_EXPIRY		start the timer anew whenever the delay is kept
 *   EXPIRY_CHECK_WITH_IRQS_ON	let interrupts in between the look at the clock and the decision
 * LIVENESS leaves out the monitor for the ltl formula, which needs a world that falls silent.
 *
 * What is left out, and why nothing is missed by it:
 *   - Counts. One bit tells that RT tasks are runnable, one that other fair tasks are; the
 *     decision asks for no more.
 *   - Wakers. One process stands for all other CPUs: what a waker does it does under the lock,
 *     and it takes nothing out of it. A wake-up that is queued for this CPU
 *     (ttwu_queue_wakelist()) is one from an interrupt handler here, sched_ttwu_pending().
 *   - Softirqs, nested handlers, wake-ups by the thread's own system calls: they cannot do
 *     more than an interrupt in the same place, with the same check behind it.
 *   - What user space does with its word. The kernel reads only the request, and here it finds
 *     or does not find one as it pleases.
 *   - The other reasons to refuse (class, core scheduling, bandwidth, timers, sysctl): the
 *     decision may always refuse.
 *   - The other tasks. They have no delay here, but may leave the timer running or stopped,
 *     as do threads with a delay that come from or go to other CPUs.
 *   - Time is a counter from the grant to the expiry. The timer may come late, never early,
 *     as hrtimer_interrupt() has it.
 *
 * What this does not show: it was written by hand after the code and says nothing about what
 * the code has and the model has not. Memory is sequentially consistent here. The comparison
 * in only_fair_runnable() is taken to be right. Deadline and stop tasks are RT tasks, but
 * their own mechanisms (throttling, push and pull), priority inheritance, CPU hotplug and NMIs
 * are not there. An interrupt that was sent is delivered; how long that takes is not known.
 */

#define LENGTH	2

mtype:task = { FAIR, RT, OTHER };
mtype:hrtimer = { STOPPED, ARMED, STRAY };

/* The run queue: its lock, what is runnable beside the thread, and rq->curr. */
bool rq_lock;
bool rt;
bool fair;
mtype:task curr = FAIR;

/* The CPU */
bool user_mode = true;
bool irqs_on = true;
bool in_irq;
bool ipi;			/* a reschedule interrupt is on its way */
bool folded;			/* test_preempt_need_resched() */
mtype:hrtimer timer = STOPPED;	/* STRAY: left behind by another task */

/* The fair thread */
bool need_resched;		/* TIF_NEED_RESCHED */
bool notify_resume;		/* TIF_NOTIFY_RESUME */
bool switched;			/* preempt_delay_switched() */
bool granted;			/* preempt_delay.granted, SYSCALL_WORK_SYSCALL_PREEMPT_DELAY */
byte expires;			/* preempt_delay.expires */
bool word;			/* slice_ctrl.granted in user memory */

/* For the properties and the clock only */
byte now;			/* time since the grant */
bool held;			/* a reschedule was taken back, schedule() was not called since */
bool had_one;			/* a grant was given, schedule() was not called since */

#define timer_due	(timer == STRAY || timer == ARMED && now >= expires)

#ifdef LIVENESS
bool quiet;			/* the world has fallen silent */
#else
#define quiet	false
#endif

/*** The scheduler *******************************************************************/

inline local_irq_disable() { irqs_on = false }
inline local_irq_enable() { irqs_on = true }
inline raw_spin_rq_lock() { atomic { !rq_lock -> rq_lock = true } }
inline raw_spin_rq_unlock() { rq_lock = false }

/* prepare_task_switch(): rseq_preempt() asks for a look at the user word. */
inline context_switch(next)
{
	switched = true;
	notify_resume = true;
	curr = next
}

inline clear_need_resched()
{
	need_resched = false;
	folded = false;
	held = false;
	had_one = false
}

/* One step, for all is done under the lock with interrupts off. */
inline __schedule()
{
	atomic {
		!rq_lock ->
		clear_need_resched();
		if
		:: rt -> printf("thread   __schedule(): switches to the RT task\n"); context_switch(RT)
		:: !rt && fair -> printf("thread   __schedule(): switches to another fair task\n"); context_switch(OTHER)
		:: !rt -> printf("thread   __schedule(): picks the thread again\n")
		fi
	}
}

/* schedule() of a thread that waits for something, and gets it some time. */
inline sleep()
{
	atomic {
		!rq_lock ->
		clear_need_resched();
		if
		:: rt -> printf("thread   __schedule(): switches to the RT task\n"); context_switch(RT)
		:: else -> printf("thread   sleeps\n"); context_switch(OTHER)
		fi
	}
}

/* The set_*_need_resched() of the CPU itself: both forms. */
inline set_need_resched_current()
{
	need_resched = true;
	folded = true
}

/* On this CPU. */
inline resched_curr_here()
{
	if
	:: need_resched
	:: else -> set_need_resched_current()
	fi
}

/* From another CPU: only the flag, and no interrupt if that was set already. */
inline resched_curr_there()
{
	if
	:: curr != FAIR
	:: curr == FAIR && need_resched ->
	   printf("remote   resched_curr(): is set already, no interrupt\n")
	:: curr == FAIR && !need_resched ->
	   atomic {
		need_resched = true;
		printf("remote   resched_curr(): sets TIF_NEED_RESCHED ...\n")
	   }
	   atomic {
		ipi = true;
		printf("remote   ... smp_send_reschedule()\n")
	   }
	fi
}

/*** The thread **********************************************************************/

/*
 * preempt_schedule(). In most places there is nothing to it, because the interrupt that sets
 * the folded bit looks at it as well. What remains is the end of a stretch with interrupts off.
 */
inline preempt_enable()
{
#ifdef PREEMPTION
	if
	:: folded -> __schedule()
	:: true
	fi
#else
	skip
#endif
}

/* get_user(), put_user(): may fault. */
inline access_user()
{
	if
	:: true
	:: sleep()
	fi
}

inline preempt_delay_set_word(value)
{
	access_user();
	word = value
}

inline preempt_delay_end()
{
	atomic {
		granted = false;
		printf("thread   preempt_delay_end()\n")
	}
	/* hrtimer_try_to_cancel(), with interrupts off */
	atomic {
		timer = STOPPED;
		expires = 0;
		now = 0
	}
}

/* fair_delay_refusal() and what becomes of it */
inline preempt_delay_take_back_resched()
{
#ifndef DECIDE_WITHOUT_LOCK
	raw_spin_rq_lock();
#endif
	if
	:: true -> refused = true
	:: atomic {
		!rt ->
		refused = false;
		printf("thread   fair_delay_refusal(): only fair tasks\n")
	   }
	   /* clear_tsk_need_resched() */
	   need_resched = false;
	   /* clear_preempt_need_resched() */
#ifndef KEEP_FOLDED_BIT
	   folded = false;
#endif
	   atomic {
		held = true;
		printf("thread   reschedule taken back\n")
	   }
	fi;
#ifndef DECIDE_WITHOUT_LOCK
	raw_spin_rq_unlock()
#endif
}

inline preempt_delay_grant()
{
	local_irq_disable();
	if
	:: !need_resched || switched -> refused = true
	:: else ->
	   atomic { now = 0; expires = LENGTH }
	   preempt_delay_take_back_resched();
	   if
	   :: atomic { refused -> expires = 0; now = 0 }
	   :: atomic {
		else ->
		assert(!had_one);
		had_one = true;
		granted = true;
		timer = ARMED;
		printf("thread   preempt_delay_grant(): granted\n")
	      }
	   fi
	fi;
	local_irq_enable()
}

inline preempt_delay_start()
{
	preempt_delay_set_word(true);
	preempt_delay_grant();
	if
	:: refused ->
	   preempt_enable();
	   preempt_delay_set_word(false)
	:: else
	fi
}

inline preempt_delay_keep_refusal()
{
	local_irq_disable();
	if
	/* preempt_delay_switched(), fair_delay_futile() without the lock, other_work */
	:: switched || rt || more -> refused = true
	:: else ->
	   if
	   :: now >= expires -> refused = true
	   :: else ->
#ifdef EXPIRY_CHECK_WITH_IRQS_ON
	      local_irq_enable();
	      local_irq_disable();
#endif
	      preempt_delay_take_back_resched()
#ifdef RELATIVE_EXPIRY
	      ;
	      if
	      :: atomic { !refused -> expires = now + LENGTH; timer = ARMED }
	      :: else
	      fi
#endif
	   fi
	fi;
	local_irq_enable()
}

inline preempt_delay_keep()
{
	preempt_delay_keep_refusal();
	if
	:: refused ->
	   preempt_enable();
	   preempt_delay_end();
	   preempt_delay_set_word(false)
	:: else
	fi
}

inline __preempt_delay_resched()
{
	if
	:: granted -> preempt_delay_keep()
	:: else ->
	   /* get_user() of the request */
	   access_user();
	   if
	   :: true -> refused = true
	   /* fair_delay_futile() without the lock */
	   :: !more && !rt -> preempt_delay_start()
	   fi
	fi
}

/* rseq_handle_notify_resume(), rseq_update_cpu_node_id() */
inline resume_user_mode_work()
{
	notify_resume = false;
	if
	/* __preempt_delay_switched_back() */
	:: switched ->
	   switched = false;
	   if
	   :: granted -> preempt_delay_end()
	   :: else
	   fi;
	   preempt_delay_set_word(false)
	:: else
	fi
}

active proctype thread() provided (curr == FAIR && !in_irq)
{
	bool from_irq, resched, more, refused;

user:
	if
	/* For ever, but interrupts arrive, and other CPUs get done with their wake-ups. */
	:: user_mode && !ipi && !rq_lock -> goto user
	:: atomic { user_mode && !quiet -> user_mode = false; printf("thread   system call\n") }
	   goto syscall
	:: atomic { user_mode && !quiet -> user_mode = false; from_irq = true; printf("thread   exception\n") }
	   goto exception
	:: atomic { !user_mode -> from_irq = true }
	   goto exit
	fi;

exception:
	access_user();
	local_irq_disable();
	goto exit;

	/* syscall_trace_enter(): preempt_delay_syscall_enter(), rseq_slice_yield() or not */
syscall:
	if
	:: granted && !switched ->
	   preempt_delay_end();
	   preempt_delay_set_word(false);
	   __schedule()
#ifdef PREEMPTION
	:: granted && switched ->
	   preempt_delay_end()
#endif
	:: else
	fi;
	local_irq_disable();

	/* exit_to_user_mode_prepare(), exit_to_user_mode_loop() */
exit:
	do
	:: atomic {
		/* read_thread_flags() */
		need_resched || notify_resume ->
		resched = need_resched;
		more = notify_resume
	   }
	   local_irq_enable();
	   preempt_enable();
	   if
	   :: resched ->
	      refused = true;
	      if
	      :: from_irq -> __preempt_delay_resched()
	      :: else
	      fi;
	      if
	      :: refused -> __schedule()
	      :: else
	      fi
	   :: else
	   fi;
	   if
	   :: more -> resume_user_mode_work()
	   :: else
	   fi;
	   atomic { local_irq_disable(); resched = false; more = false; refused = false }
	:: atomic {
		else ->
		from_irq = false;
		user_mode = true;
		irqs_on = true;
		printf("thread   user mode\n");
		goto user
	   }
	od
}

/*** Interrupts of this CPU **********************************************************/

/* What they find of the thread stays where it is until curr is the thread again. */
inline irqentry_enter()
{
	irqs_on = false;
	in_irq = true
}

active proctype interrupt() provided (curr == FAIR)
{
	do
	:: if
	   :: atomic {
		irqs_on && ipi ->
		irqentry_enter();
		ipi = false;
		folded = folded || need_resched;
		printf("irq      scheduler_ipi()\n")
	      }
	   :: atomic {
		irqs_on && timer_due ->
		irqentry_enter();
		timer = STOPPED;
		printf("irq      preempt_delay_expired()\n");
		if
		:: granted -> set_need_resched_current()
		:: else
		fi
	      }
	   :: atomic {
		irqs_on && !quiet ->
		irqentry_enter();
		!rq_lock ->
		rt = true;
		resched_curr_here();
		printf("irq      try_to_wake_up(): RT\n")
	      }
	   :: atomic {
		irqs_on && !quiet ->
		irqentry_enter();
		!rq_lock ->
		fair = true;
		printf("irq      try_to_wake_up(): fair\n");
		/* check_preempt_wakeup_fair() */
		if
		:: resched_curr_here()
		:: true
		fi
	      }
	   :: atomic {
		/* sched_tick(), or rcu_sched_clock_irq(), which needs no lock */
		irqs_on && !quiet ->
		irqentry_enter();
		set_need_resched_current();
		printf("irq      tick: asks for a reschedule\n")
	      }
	   :: atomic {
		/* task_work_add(), or a signal: other work on the way to user mode */
		irqs_on && !quiet ->
		irqentry_enter();
		notify_resume = true;
		printf("irq      other work\n")
	      }
	   fi;
	   if
	   /* irqentry_exit_to_user_mode(): the thread's own way out, interrupts still off */
	   :: atomic { user_mode -> user_mode = false; in_irq = false }
	   :: else ->
#ifdef PREEMPTION
	      /* raw_irqentry_exit_cond_resched(), preempt_schedule_irq() */
	      do
	      :: need_resched -> __schedule()
	      :: else -> break
	      od;
#endif
	      atomic { irqs_on = true; in_irq = false }
	   fi
	od
}

/*** The rest of the machine *********************************************************/

/* try_to_wake_up() on other CPUs: ttwu_do_activate(), wakeup_preempt() */
active proctype remote()
{
	do
	:: atomic { !quiet && !rq_lock -> rq_lock = true }
	   if
	   :: atomic { rt = true; printf("remote   try_to_wake_up(): RT\n") }
	      resched_curr_there()
	   :: atomic { fair = true; printf("remote   try_to_wake_up(): fair\n") }
	      /* check_preempt_wakeup_fair() */
	      if
	      :: resched_curr_there()
	      :: true
	      fi
	   fi;
	   raw_spin_rq_unlock()
	od
}

/* What runs here instead of the thread. OTHER is a fair task, or none if the thread sleeps. */
active proctype others() provided (curr != FAIR)
{
	do
	:: atomic { curr == RT && !rq_lock -> rt = false; curr = OTHER }
	:: atomic { curr == OTHER && rt && !rq_lock -> curr = RT }
	:: atomic {
		curr == OTHER && !rt && !rq_lock && !quiet ->
		rt = true;
		curr = RT
	   }
	:: atomic {
		curr == OTHER && !rt && !rq_lock ->
		/* Wake-ups, fair tasks that block, interrupts, delays of others meanwhile */
		if
		:: fair = true
		:: fair = false
		fi;
		if
		:: ipi = false
		:: true
		fi;
		if
		:: timer = STOPPED
		:: timer = STRAY
		:: true
		fi;
		printf("others   __schedule(): switches to the thread\n");
		curr = FAIR
	   }
	od
}

active proctype time()
{
	do
	:: atomic { now < expires && !quiet -> now++; printf("time     passes\n") }
	od
}

#ifdef LIVENESS
/* At any moment. Wake-ups and interrupts without end could keep the CPU from anything. */
active proctype world() { quiet = true }

ltl rt_runs { [] (quiet && rt -> <> (curr == RT)) }
#else
/* rq_lock: another CPU has not done its wake-up yet, the interrupt may still be sent. */
#define in_user		(user_mode && !in_irq)
#define unseen		(in_user && !ipi && !rq_lock)

#define held_back	(unseen && (rt || need_resched))
#define outlasts	(in_user && held && !(timer == ARMED && (now < LENGTH || now >= expires)))
#define folded_alone	(folded && (user_mode && !in_irq || \
				    irqs_on && curr == FAIR && !need_resched))
#define stray		(in_user && (word != granted || granted && switched || \
				     timer == ARMED && !granted))

/* Never takes a step, and so costs no state, unless something is wrong. */
active proctype monitor()
{
end:	if
	:: atomic { held_back -> printf("VIOLATED held_back\n"); assert(false) }
	:: atomic { outlasts -> printf("VIOLATED outlasts\n"); assert(false) }
	:: atomic { folded_alone -> printf("VIOLATED folded\n"); assert(false) }
	:: atomic { stray -> printf("VIOLATED stray\n"); assert(false) }
	fi
}
#endif
