// SPDX-License-Identifier: MIT
#ifndef SLICE_EXT_TOOL_BENCH_ROWS_HPP
#define SLICE_EXT_TOOL_BENCH_ROWS_HPP

#include <nlohmann/json.hpp>
#include <vector>

#include "latency/record.hpp"

namespace slice_ext::tool
{

// The rows of a report of slice-ext bench --json, in its order. Throws latency::RecordError that
// names the row and the key: another schema or version, a run that failed or was ended early, no
// rows, a key that is missing or of a wrong type, figures that cannot be (percentiles out of order,
// throughput that is not sections by time, an unknown mode), two rows of one place in the table.
std::vector<latency::LockRow> lock_rows_from_json(const nlohmann::json &report);

inline constexpr const char *kBenchSchema = "slice-ext/bench";
inline constexpr int kBenchSchemaVersion = 1;

} // namespace slice_ext::tool

#endif
