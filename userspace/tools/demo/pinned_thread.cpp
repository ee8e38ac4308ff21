// SPDX-License-Identifier: MIT
#include "demo/pinned_thread.hpp"

#include <climits>
#include <system_error>
#include <utility>

#include "cpu_list.hpp"

namespace slice_ext::tool
{

PinnedThread::PinnedThread(int cpu, int fifo_priority, std::function<void()> body)
	: body_(std::move(body))
{
	constexpr std::size_t kStackBytes = 256 * 1024;
	const SingleCpuSet where(cpu);
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, kStackBytes);
	pthread_attr_setaffinity_np(&attributes, where.size(), where.get());
	if (fifo_priority > 0) {
		sched_param parameters = {};
		parameters.sched_priority = fifo_priority;
		pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
		pthread_attr_setschedparam(&attributes, &parameters);
	}
	const int error = pthread_create(&thread_, &attributes, start, this);
	pthread_attr_destroy(&attributes);
	if (error != 0)
		throw std::system_error(error, std::generic_category(),
		                        "cannot start a " +
		                                std::string(fifo_priority ? "SCHED_FIFO " : "") +
		                                "thread on CPU " + std::to_string(cpu));
}

PinnedThread::~PinnedThread()
{
	pthread_join(thread_, nullptr);
}

void *PinnedThread::start(void *self)
{
	static_cast<PinnedThread *>(self)->body_();
	return nullptr;
}

} // namespace slice_ext::tool
