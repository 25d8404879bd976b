# One folder of src/ is one target. sardonyx_module(NAME DEPENDS other...) makes the object library
# sardonyx_NAME from the folder's sources; the dependency table of docs/architecture.md is
# what the DEPENDS say, and tools/lint_includes.py checks the includes against it.

add_library(sardonyx_options INTERFACE)
target_compile_features(sardonyx_options INTERFACE cxx_std_20)
target_compile_options(sardonyx_options INTERFACE
  -Wall -Wextra -fno-math-errno
  -fvisibility=hidden -fvisibility-inlines-hidden  # but for what the public headers declare
  $<$<BOOL:${SARDONYX_WERROR}>:-Werror>)
# One kernel source, three instruction sets on x86-64: AVX-512, AVX2 and a portable one that any machine runs. On Arm it is
# NEON, which all processors of 64 bits have; what SVE adds is not there for all that have it.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(SARDONYX_DISABLED_TARGETS "(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|HWY_EMU128|HWY_SCALAR)")
  # As on x86-64: char has a sign, and products are added in one rounding only where a kernel says so.
  target_compile_options(sardonyx_options INTERFACE -fsigned-char -ffp-contract=off)
else()
  set(SARDONYX_DISABLED_TARGETS "(HWY_SSSE3|HWY_SSE4)")
endif()
target_compile_definitions(sardonyx_options INTERFACE "HWY_DISABLED_TARGETS=${SARDONYX_DISABLED_TARGETS}")
# g++ 12 warns of overlaps in std::string's operator+ (GCC bug 105651) and of unset std::optional contents
# (105562) that are not there.
target_compile_options(sardonyx_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
if(WIN32)
  # Attributes of setjmp in libpng, and those that say what ELF libraries export.
  target_compile_options(sardonyx_options INTERFACE -Wno-ignored-attributes -Wno-attributes)
  # g++ takes a template's function to be the one that it compiled, and the registers that this one uses to be all that a call
  # changes; but the linker may take another file's, compiled with another -O.
  target_compile_options(sardonyx_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fno-ipa-ra>)
endif()
# A release has neither debug information nor names of files; debug builds name them as they are, for debuggers.
target_compile_options(sardonyx_options INTERFACE
  "$<$<CONFIG:RelWithDebInfo,MinSizeRel>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.;-ffile-prefix-map=${PROJECT_BINARY_DIR}=build>")
# What nothing refers to is left out by linkers that are asked to (sardonyx_link_small).
target_compile_options(sardonyx_options INTERFACE "$<$<CONFIG:Release>:-ffunction-sections;-fdata-sections>")
target_include_directories(sardonyx_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
if(SARDONYX_SANITIZE)
  target_compile_definitions(sardonyx_options INTERFACE SARDONYX_SANITIZED)  # for tests that would take too long, or need limits
  target_compile_options(sardonyx_options INTERFACE
    -fsanitize=${SARDONYX_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(SARDONYX_SANITIZE MATCHES "undefined" AND SARDONYX_SANITIZE MATCHES "address")
    # What is read through null or beyond an object AddressSanitizer sees itself; asking before each access takes a quarter
    # of the time that compiling takes.
    target_compile_options(sardonyx_options INTERFACE
      -fno-sanitize=null,object-size,vptr,nonnull-attribute,returns-nonnull-attribute)
  endif()
  target_link_options(sardonyx_options INTERFACE -fsanitize=${SARDONYX_SANITIZE})
endif()
if(SARDONYX_BUILD_FUZZERS AND SARDONYX_GUIDE_FUZZERS)  # what steers the mutations: see fuzz/driver.cc
  target_compile_options(sardonyx_options INTERFACE $<IF:$<CXX_COMPILER_ID:GNU>,
    -fsanitize-coverage=trace-pc,-fsanitize=fuzzer-no-link>)
endif()

# Half of what a file costs to compile is its headers and the templates it shares with its neighbours, so files are
# compiled eight at a time (docs/decisions/0020-files-compiled-together.md).
option(SARDONYX_COMPILE_TOGETHER "Compile several sources of a folder at once; OFF suits work on single files" ON)
function(sardonyx_compile_together target)
  if(SARDONYX_COMPILE_TOGETHER)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # To g++ what is not the main file is a header.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# What a program links: without the functions and data that nothing refers to, of which sources that are compiled together bring
# some, and with relocations packed. Half a megabyte of the program is places that the loader adjusts to where it lies; packed
# they are a sixteenth of that, for loaders of glibc 2.36 and later: a program that is run here tells. mold 1 packs them, but such
# programs don't start.
include(CheckCXXSourceRuns)
set(pack_relocations -fuse-ld=bfd -Wl,-z,pack-relative-relocs)
if(NOT CMAKE_CROSSCOMPILING)
  set(CMAKE_REQUIRED_LINK_OPTIONS ${pack_relocations})
  check_cxx_source_runs("int number = 0; int* place = &number; int main() { return *place; }" SARDONYX_PACKS_RELOCATIONS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
endif()
function(sardonyx_link_small target)
  target_link_options(${target} PRIVATE $<$<CONFIG:Release>:-Wl,--gc-sections>)
  if(SARDONYX_PACKS_RELOCATIONS)
    target_link_options(${target} PRIVATE ${pack_relocations})
  endif()
endfunction()

# How a release is compiled, and by how many per cent inlining may make a file of it grow (g++; 40 where nothing is said).
function(sardonyx_optimize target level)
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:${level}>")
  if(ARGN)
    target_compile_options(${target} PRIVATE
      "$<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:--param=inline-unit-growth=${ARGN}>")
  endif()
endfunction()

# The sources of a folder, without those for other systems (NAME_posix.cc, NAME_windows.cc), which nothing is compiled together with.
function(sardonyx_sources variable pattern)
  file(${pattern} found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(WIN32)
    list(FILTER found EXCLUDE REGEX "_posix\\.cc$")
  else()
    list(FILTER found EXCLUDE REGEX "_windows\\.cc$")
  endif()
  set(of_system ${found})
  list(FILTER of_system INCLUDE REGEX "_(posix|windows)\\.cc$")
  set_source_files_properties(${of_system} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# OPTIMIZE says how a release compiles the folder where -O2 isn't the right choice: most code runs once for a model,
# and -O3 makes it a third larger (docs/performance.md, "Size"). GROWTH: by how many per cent a file may grow by inlining; without
# both, 10. Other build types say for themselves. SEPARATE: each source is compiled by itself. LOOPS: it has those that take a
# run's time, whose first instructions stand at round addresses; elsewhere the gaps before them are a fortieth of the code.
function(sardonyx_module name)
  cmake_parse_arguments(ARG "SEPARATE;LOOPS" "" "DEPENDS;LIBRARIES;OPTIMIZE;GROWTH" ${ARGN})
  sardonyx_sources(sources GLOB_RECURSE)
  if(NOT sources)
    add_library(sardonyx_${name} INTERFACE)
    return()
  endif()
  add_library(sardonyx_${name} STATIC ${sources})
  if(NOT ARG_SEPARATE)
    sardonyx_compile_together(sardonyx_${name})
  endif()
  if(NOT ARG_OPTIMIZE AND NOT ARG_GROWTH)
    set(ARG_GROWTH 10)
  endif()
  if(NOT ARG_OPTIMIZE)
    set(ARG_OPTIMIZE -O2)
  endif()
  sardonyx_optimize(sardonyx_${name} ${ARG_OPTIMIZE} ${ARG_GROWTH})
  if(NOT ARG_LOOPS)
    set(gaps -fno-align-functions -fno-align-loops -fno-align-jumps -fno-align-labels)
    target_compile_options(sardonyx_${name} PRIVATE "$<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:${gaps}>")
  endif()
  # Nothing asks for the type of an object; the names of a thousand types would be a fifth of a megabyte.
  target_compile_options(sardonyx_${name} PRIVATE $<$<CONFIG:Release>:-fno-rtti>)
  target_link_libraries(sardonyx_${name} PUBLIC sardonyx_options fmt::fmt Threads::Threads ${ARG_LIBRARIES})
  foreach(other IN LISTS ARG_DEPENDS)
    target_link_libraries(sardonyx_${name} PUBLIC sardonyx_${other})
  endforeach()
endfunction()

# A test program of one folder: tests/NAME/*.cc, linked to the modules it names. SEPARATE names the sources with
# helpers of their own under names that others have, too; ALL for all.
function(sardonyx_test name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES;SEPARATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  if(NOT sources)
    message(FATAL_ERROR "sardonyx_test(${name}): no sources in ${CMAKE_CURRENT_SOURCE_DIR}/${name}")
  endif()
  add_executable(test_${name} ${sources})
  if(NOT ARG_SEPARATE STREQUAL ALL)
    sardonyx_compile_together(test_${name})
    list(TRANSFORM ARG_SEPARATE PREPEND ${name}/)
    set_source_files_properties(${ARG_SEPARATE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  target_link_libraries(test_${name} PRIVATE GTest::gtest GTest::gtest_main ${ARG_LIBRARIES})
  if(WIN32)  # -O1 puts constants of headers into another section than -O2, and the linker tells them apart by that
    target_link_options(test_${name} PRIVATE -Wl,--allow-multiple-definition)
  endif()
  foreach(other IN LISTS ARG_DEPENDS)
    target_link_libraries(test_${name} PRIVATE sardonyx_${other})
  endforeach()
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # Options are set by designated initializers; what is not named keeps its default.
  target_compile_options(test_${name} PRIVATE -Wno-missing-field-initializers "$<$<CONFIG:Release>:-O1>")
  target_compile_definitions(test_${name} PRIVATE SARDONYX_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND test_${name})
endfunction()
