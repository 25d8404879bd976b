// What sources for Windows alone share.
#pragma once

#ifndef NOMINMAX
#define NOMINMAX
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

#include <string>
#include <string_view>

namespace sardonyx::os {

// Names as Windows takes them, and back.
std::wstring wide(std::string_view text);
std::string narrow(std::wstring_view text);

// The system's handle of a descriptor.
HANDLE handle_of(int descriptor);
// The descriptor of a new handle, which goes with it; -1, with errno set, where the handle is none
// or no descriptor is left.
int descriptor_of(HANDLE handle, int flags);
// errno as the system's last error says. Always -1.
int set_errno();

}  // namespace sardonyx::os
