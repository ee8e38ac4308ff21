# SPDX-License-Identifier: MIT
# Makes the built-in experiments part of the program: a guest or a lab machine needs no other file.
set(_experiments "")
foreach(_name t1 t2 t6 phase)
  set(_file ${CMAKE_CURRENT_LIST_DIR}/${_name}.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_file})
  file(READ ${_file} _text)
  string(APPEND _experiments "\t\t{\"${_name}\", R\"json(${_text})json\"},\n")
endforeach()
file(CONFIGURE OUTPUT latency/built_in_experiments.cpp @ONLY CONTENT [=[
#include "latency/experiment.hpp"

namespace slice_ext::tool::latency
{

const std::vector<BuiltIn> &built_in_experiments()
{
	static const std::vector<BuiltIn> experiments = {
@_experiments@	};
	return experiments;
}

} // namespace slice_ext::tool::latency
]=])
