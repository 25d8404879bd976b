# An archive for Windows by CPack (./dev windows --package): the program, the library of the C interface, what links it, and its headers.
if(NOT TARGET sardonyx_shared OR NOT TARGET sardonyx_cli)
  return()
endif()
set(component windows)
install(TARGETS sardonyx_cli RUNTIME DESTINATION bin COMPONENT ${component} EXCLUDE_FROM_ALL)
install(TARGETS sardonyx_shared
  RUNTIME DESTINATION bin COMPONENT ${component} EXCLUDE_FROM_ALL
  ARCHIVE DESTINATION lib COMPONENT ${component} EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_BINARY_DIR}/sardonyx.def DESTINATION lib COMPONENT ${component} EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sardonyx DESTINATION include COMPONENT ${component} EXCLUDE_FROM_ALL
  FILES_MATCHING PATTERN "sardonyx*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION . COMPONENT ${component} EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/licenses DESTINATION . COMPONENT ${component} EXCLUDE_FROM_ALL)
# Of the compiler's libraries, which are linked into both.
install(FILES /usr/share/doc/mingw-w64-x86-64-dev/copyright DESTINATION licenses RENAME mingw-w64.txt
  COMPONENT ${component} EXCLUDE_FROM_ALL OPTIONAL)
install(FILES /usr/share/doc/gcc-mingw-w64-base/copyright DESTINATION licenses RENAME gcc.txt
  COMPONENT ${component} EXCLUDE_FROM_ALL OPTIONAL)

set(CPACK_GENERATOR ZIP)
set(CPACK_PACKAGE_NAME sardonyx)
set(CPACK_PACKAGE_FILE_NAME sardonyx-${PROJECT_VERSION}-windows-x86_64)
set(CPACK_COMPONENTS_ALL ${component})
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_STRIP_FILES ON)
include(CPack)
