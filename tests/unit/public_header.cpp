// SPDX-License-Identifier: MIT
#include "public_header.c"
