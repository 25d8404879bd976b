// Opening a file that must lie inside a folder, whatever links or names say. Internal to wire.
#pragma once

#include <string>

#include "base/os.h"

namespace sardonyx::wire {

// Opens `relative` for reading below the folder that `folder` is open on, following no link in any
// component. On failure the descriptor is not open and errno says why: ELOOP for a link. `relative`
// has no ".." component and is not absolute.
os::Descriptor open_confined(int folder, const std::string& relative);
#ifndef _WIN32
// Linux resolves the name in one call where it can; this goes component by component.
os::Descriptor open_confined_by_component(int folder, const std::string& relative);
#endif

// Finds what `relative` leads to, links followed: a descriptor that tells real_path_of and
// os::info_of, for `reopened` to make one that reads the same file, whatever its name means by
// then.
os::Descriptor find_linked(int folder, const std::string& relative);
os::Descriptor reopened(int found);

// Where an open descriptor's file really is; empty where the system does not tell.
std::string real_path_of(int descriptor);

}  // namespace sardonyx::wire
