// Profiles.
#include "capi/session.h"

using namespace sardonyx;
using namespace sardonyx::capi;

sardonyx_status* sardonyx_profile_create(size_t max_events, sardonyx_profile** profile) {
  return guarded([&] {
    required(profile, "profile");
    *profile = new sardonyx_profile{{}, max_events > 0 ? Profile(max_events) : Profile(), {}, {}};
  });
}

void sardonyx_profile_release(sardonyx_profile* profile) { release_handle(profile); }

size_t sardonyx_profile_run_count(const sardonyx_profile* profile) {
  return !is_usable(profile) ? 0 : profile->profile.runs().size();
}

sardonyx_status* sardonyx_profile_json(sardonyx_profile* profile, const char** text) {
  return guarded([&] {
    required(profile, "profile");
    required(text, "text");
    profile->json = profile_json(profile->profile);
    *text = profile->json.c_str();
  });
}

sardonyx_status* sardonyx_profile_trace(sardonyx_profile* profile, const char** text) {
  return guarded([&] {
    required(profile, "profile");
    required(text, "text");
    profile->trace = profile_trace(profile->profile);
    *text = profile->trace.c_str();
  });
}
