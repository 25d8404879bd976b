// Libraries that Sardonyx must not take operators from; FAULT_… says what is wrong with this one.
#include <sardonyx/custom.h>

#include <cstdlib>
#include <stdexcept>

extern "C" {
#ifdef FAULT_none
[[gnu::visibility("default")]] int something_else() { return 1; }
#else
#ifdef FAULT_old_interface
extern const int32_t sardonyx_operators_abi;
const int32_t sardonyx_operators_abi = sardonyx::custom_operators_abi - 1;
#else
extern const int32_t sardonyx_operators_abi;
const int32_t sardonyx_operators_abi = sardonyx::custom_operators_abi;
#endif
extern const char* const sardonyx_operators_cxx;
#ifdef FAULT_other_cxx
const char* const sardonyx_operators_cxx = "another one";
#else
const char* const sardonyx_operators_cxx = sardonyx::custom_operators_cxx;
#endif
void sardonyx_add_operators(sardonyx::CustomRegistry&);
void sardonyx_add_operators(sardonyx::CustomRegistry&) {
  if (std::getenv("OPERATORS_THROW_A_NUMBER") != nullptr) throw 7;
  throw std::runtime_error("no luck today");
}
#endif
}
