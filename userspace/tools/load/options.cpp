// SPDX-License-Identifier: MIT
#include "load/options.hpp"

#include <stdexcept>
#include <string>

namespace slice_ext::tool
{

const char *load_kind_name(LoadKind kind)
{
	switch (kind) {
	case LoadKind::abuser:
		return "abuser";
	case LoadKind::user:
		return "user";
	case LoadKind::contender:
		return "contender";
	case LoadKind::hog:
		return "hog";
	case LoadKind::build:
		return "build";
	}
	return "?";
}

LoadKind load_kind(std::string_view name)
{
	for (const LoadKind kind : {LoadKind::abuser, LoadKind::user, LoadKind::contender,
	                            LoadKind::hog, LoadKind::build})
		if (name == load_kind_name(kind))
			return kind;
	throw std::invalid_argument("'" + std::string(name) + "' is not a kind of load");
}

unsigned default_threads(LoadKind kind)
{
	switch (kind) {
	case LoadKind::abuser:
	case LoadKind::user:
	case LoadKind::contender:
		return 3;
	case LoadKind::hog:
	case LoadKind::build:
		return 1;
	}
	return 1;
}

} // namespace slice_ext::tool
