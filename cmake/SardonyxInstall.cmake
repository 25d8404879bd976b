# What `cmake --install` puts where. Components: runtime (the shared library), development (headers, static
# library, CMake package, .pc files), program (the command line and its manual pages), onnxruntime (libonnxruntime.so.1 in
# a folder of its own, where no program finds it by accident), each with the licences.
#
# The installed tree may be moved: all paths are relative to the files that hold them.
include(CMakePackageConfigHelpers)

# Who links the static library also links what it needs. For each library: what CMake looks for and by which
# target it knows that it is there, pkg-config's name, the flag to the linker, and the package of Debian.
set(need_fmt::fmt "find_package(fmt QUIET)" fmt -lfmt libfmt-dev)
set(need_Threads::Threads "find_package(Threads QUIET)" "" -pthread libc6-dev)
set(need_ZLIB::ZLIB "find_package(ZLIB QUIET)" zlib -lz zlib1g-dev)
set(need_PNG::PNG "find_package(PNG QUIET)" libpng -lpng libpng-dev)
set(need_JPEG::JPEG "find_package(JPEG QUIET)" libjpeg -ljpeg libjpeg-dev)
set(need_PkgConfig::hwy "sardonyx_find_by_pkg_config(hwy libhwy)" libhwy -lhwy libhwy-dev)
set(need_PkgConfig::re2 "sardonyx_find_by_pkg_config(re2 re2)" re2 -lre2 libre2-dev)
set(SARDONYX_STATIC_NEEDS "")
set(SARDONYX_PC_REQUIRES "")
set(SARDONYX_PC_LIBS "")
set(pc_flags "")
set(debian_needs "")
foreach(need IN LISTS library_needs)
  if(NOT DEFINED need_${need})
    message(FATAL_ERROR "cmake/SardonyxInstall.cmake does not know how users of the library find '${need}'")
  endif()
  list(GET need_${need} 0 find)
  list(GET need_${need} 1 pc)
  list(GET need_${need} 2 flag)
  list(GET need_${need} 3 debian)
  string(APPEND SARDONYX_STATIC_NEEDS "${find}\nsardonyx_need(${need} ${debian})\n")
  string(APPEND SARDONYX_PC_LIBS " ${flag}")
  list(APPEND debian_needs ${debian})
  if(pc)
    string(APPEND SARDONYX_PC_REQUIRES " ${pc}")
  else()
    string(APPEND pc_flags " ${flag}")
  endif()
endforeach()
string(STRIP "${SARDONYX_PC_REQUIRES}" SARDONYX_PC_REQUIRES)
# Who links with a C compiler needs these by name.
set(SARDONYX_PC_STATIC_LIBS "${pc_flags} -lstdc++ -lm")
string(APPEND SARDONYX_PC_LIBS " -lstdc++ -lm")
string(STRIP "${SARDONYX_PC_LIBS}" SARDONYX_PC_LIBS)
list(REMOVE_DUPLICATES debian_needs)

set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)  # until 1.0 a minor version may change the C++ interface (CHANGELOG.md)
  set(compatibility SameMinorVersion)
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sardonyx-config-version.cmake COMPATIBILITY ${compatibility})

# sardonyx_install(LIBRARIES folder SETS prefix KIND kind RUNTIME component DEVELOPMENT component PROGRAM
# component ONNXRUNTIME component [EXTRA …]): the rules of one layout. EXTRA goes to every rule.
function(sardonyx_install)
  cmake_parse_arguments(ARG "" "LIBRARIES;SETS;KIND;RUNTIME;DEVELOPMENT;PROGRAM;ONNXRUNTIME" "EXTRA" ${ARGN})
  set(SARDONYX_DEFAULT_KIND ${ARG_KIND})
  set(made ${PROJECT_BINARY_DIR}/${ARG_SETS})
  set(config_folder ${ARG_LIBRARIES}/cmake/sardonyx)
  set(pc_folder ${ARG_LIBRARIES}/pkgconfig)
  if(IS_ABSOLUTE "${ARG_LIBRARIES}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(SARDONYX_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
    set(SARDONYX_PC_LIBDIR "${CMAKE_INSTALL_FULL_LIBDIR}")
    set(SARDONYX_PC_INCLUDEDIR "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
  else()
    file(RELATIVE_PATH up "/prefix/${pc_folder}" "/prefix")
    string(REGEX REPLACE "/$" "" up "${up}")
    set(SARDONYX_PC_PREFIX "\${pcfiledir}/${up}")
    set(SARDONYX_PC_LIBDIR "\${prefix}/${ARG_LIBRARIES}")
    set(SARDONYX_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
  endif()
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/sardonyx-config.cmake.in
    ${made}/sardonyx-config.cmake INSTALL_DESTINATION ${config_folder})
  set(pc_files)
  if(TARGET sardonyx_shared)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/sardonyx.pc.in ${made}/sardonyx.pc @ONLY)
    list(APPEND pc_files ${made}/sardonyx.pc)
  endif()
  if(TARGET sardonyx_static)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/sardonyx-static.pc.in ${made}/sardonyx-static.pc @ONLY)
    list(APPEND pc_files ${made}/sardonyx-static.pc)
    if(NOT TARGET sardonyx_shared)  # then that is what `pkg-config sardonyx` means
      configure_file(${PROJECT_SOURCE_DIR}/cmake/sardonyx-static.pc.in ${made}/sardonyx.pc @ONLY)
      list(APPEND pc_files ${made}/sardonyx.pc)
    endif()
  endif()

  set(development COMPONENT ${ARG_DEVELOPMENT} ${ARG_EXTRA})
  foreach(kind headers ${SARDONYX_LIBRARIES})
    set(set sardonyx-${kind}-${ARG_SETS})
    install(TARGETS sardonyx_${kind} EXPORT ${set}
      ARCHIVE DESTINATION ${ARG_LIBRARIES} ${development}
      RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${ARG_RUNTIME} ${ARG_EXTRA}
      LIBRARY DESTINATION ${ARG_LIBRARIES} COMPONENT ${ARG_RUNTIME} NAMELINK_COMPONENT ${ARG_DEVELOPMENT} ${ARG_EXTRA})
    install(EXPORT ${set} NAMESPACE sardonyx:: FILE sardonyx-${kind}-targets.cmake DESTINATION ${config_folder}
      ${development})
  endforeach()
  if(TARGET sardonyx_onnxruntime)
    set(set sardonyx-onnxruntime-${ARG_SETS})
    install(TARGETS sardonyx_onnxruntime EXPORT ${set}
      RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}/onnxruntime COMPONENT ${ARG_ONNXRUNTIME} ${ARG_EXTRA}
      ARCHIVE DESTINATION ${ARG_LIBRARIES}/sardonyx/onnxruntime COMPONENT ${ARG_ONNXRUNTIME} ${ARG_EXTRA}
      LIBRARY DESTINATION ${ARG_LIBRARIES}/sardonyx/onnxruntime COMPONENT ${ARG_ONNXRUNTIME} ${ARG_EXTRA})
    install(EXPORT ${set} NAMESPACE sardonyx:: FILE sardonyx-onnxruntime-targets.cmake DESTINATION ${config_folder}
      COMPONENT ${ARG_ONNXRUNTIME} ${ARG_EXTRA})
  endif()
  install(FILES ${made}/sardonyx-config.cmake ${PROJECT_BINARY_DIR}/sardonyx-config-version.cmake
    DESTINATION ${config_folder} ${development})
  install(FILES ${pc_files} DESTINATION ${pc_folder} ${development})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sardonyx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${development}
    FILES_MATCHING PATTERN "*.h")
  # The manual page and what shells complete, as far as the program has written them.
  set(help ${PROJECT_BINARY_DIR}/help)
  set(program OPTIONAL COMPONENT ${ARG_PROGRAM} ${ARG_EXTRA})
  install(FILES ${help}/sardonyx.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 ${program})
  install(FILES ${help}/sardonyx.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME sardonyx ${program})
  install(FILES ${help}/_sardonyx DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions ${program})
  install(FILES ${help}/sardonyx.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d ${program})
endfunction()

sardonyx_install(LIBRARIES ${CMAKE_INSTALL_LIBDIR} SETS install KIND ${SARDONYX_DEFAULT_KIND}
  RUNTIME runtime DEVELOPMENT development PROGRAM program ONNXRUNTIME onnxruntime)
if(TARGET sardonyx_cli)
  install(TARGETS sardonyx_cli RUNTIME COMPONENT program)
endif()
# Whichever component comes first brings them.
foreach(component runtime development program onnxruntime)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT ${component})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/licenses DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT ${component})
endforeach()
