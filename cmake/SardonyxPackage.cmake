# Debian packages by CPack (./dev package): libsardonyx0, libsardonyx-dev, sardonyx and libsardonyx-onnxruntime, made of what the
# tree has built.
#
# They have a layout of their own (libraries under the architecture's folder), hence rules of their own, which
# `cmake --install` leaves alone. Their program is linked to the shared library.
if(NOT CMAKE_LIBRARY_ARCHITECTURE OR NOT TARGET sardonyx_static OR NOT TARGET sardonyx_shared OR NOT TARGET sardonyx_cli)
  return()
endif()
find_program(GZIP gzip)
find_program(DPKG_QUERY dpkg-query)
if(NOT GZIP OR NOT DPKG_QUERY)
  return()
endif()

set(library_package libsardonyx${PROJECT_VERSION_MAJOR})
set(development_package libsardonyx-dev)
set(program_package sardonyx)
set(onnxruntime_package libsardonyx-onnxruntime)
set(packages ${library_package} ${development_package} ${program_package} ${onnxruntime_package})
set(folder lib/${CMAKE_LIBRARY_ARCHITECTURE})

sardonyx_install(LIBRARIES ${folder} SETS debian KIND shared RUNTIME ${library_package}
  DEVELOPMENT ${development_package} PROGRAM ${program_package} ONNXRUNTIME ${onnxruntime_package} EXTRA EXCLUDE_FROM_ALL)
# The program's objects, linked as they are to be installed: to the shared library, without a folder of libraries or symbols.
add_executable(sardonyx_cli_shared $<TARGET_OBJECTS:sardonyx_cli>)
set_target_properties(sardonyx_cli_shared PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME sardonyx-shared
  RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/shared SKIP_BUILD_RPATH ON)
target_link_libraries(sardonyx_cli_shared PRIVATE sardonyx_shared fmt::fmt Threads::Threads)
target_link_options(sardonyx_cli_shared PRIVATE -s)
sardonyx_link_small(sardonyx_cli_shared)
install(PROGRAMS $<TARGET_FILE:sardonyx_cli_shared> RENAME sardonyx DESTINATION bin
  COMPONENT ${program_package} EXCLUDE_FROM_ALL)
install(CODE "
  file(GLOB manuals \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/man/man1/*.1\")
  foreach(manual IN LISTS manuals)
    execute_process(COMMAND ${GZIP} -9 --no-name --force \${manual} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()" COMPONENT ${program_package} EXCLUDE_FROM_ALL)
set(changelog ${PROJECT_BINARY_DIR}/debian/changelog.Debian.gz)
execute_process(COMMAND ${GZIP} -9 --no-name --stdout ${PROJECT_SOURCE_DIR}/packaging/debian/changelog
  OUTPUT_FILE ${changelog} COMMAND_ERROR_IS_FATAL ANY)
foreach(package IN LISTS packages)
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/debian/copyright ${changelog}
    DESTINATION share/doc/${package} COMPONENT ${package} EXCLUDE_FROM_ALL)
endforeach()

# The first line of the changelog says the version: "sardonyx (0.1.0-1) …".
file(STRINGS ${PROJECT_SOURCE_DIR}/packaging/debian/changelog first LIMIT_COUNT 1)
if(NOT first MATCHES "^sardonyx \\(([0-9.]+)-([0-9a-z.+~]+)\\) ")
  message(FATAL_ERROR "packaging/debian/changelog does not begin with 'sardonyx (VERSION-REVISION) '")
endif()
if(NOT CMAKE_MATCH_1 VERSION_EQUAL PROJECT_VERSION)
  message(FATAL_ERROR "packaging/debian/changelog is of ${CMAKE_MATCH_1}, the project of ${PROJECT_VERSION}")
endif()
set(CPACK_DEBIAN_PACKAGE_RELEASE ${CMAKE_MATCH_2})
set(version ${PROJECT_VERSION}-${CMAKE_MATCH_2})

# Libraries of image formats are loaded when an image needs them: those of the usual ones come along unless somebody says
# otherwise, who has images of the rare ones installs theirs.
function(sardonyx_packages_of variable)
  set(packages)
  foreach(library IN LISTS ARGN)
    file(REAL_PATH ${library} library)
    execute_process(COMMAND ${DPKG_QUERY} --search ${library} OUTPUT_VARIABLE found ERROR_QUIET)
    if(found MATCHES "^([a-z0-9.+-]+)[:,]")
      list(APPEND packages ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(JOIN packages ", " packages)
  set(${variable} "${packages}" PARENT_SCOPE)
endfunction()
get_property(usual GLOBAL PROPERTY SARDONYX_LOADED_LIBRARIES)
sardonyx_packages_of(usual_formats ${usual})
set(rare)
foreach(format IN ITEMS webp tiff openjp2)
  if(TARGET PkgConfig::${format})
    list(GET ${format}_LINK_LIBRARIES 0 library)
    list(APPEND rare ${library})
  endif()
endforeach()
sardonyx_packages_of(rare_formats ${rare})
list(REMOVE_ITEM debian_needs libc6-dev)
list(JOIN debian_needs ", " recommended)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sardonyx)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "Sardonyx")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SOURCE sardonyx)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/shared)
file(STRINGS ${PROJECT_SOURCE_DIR}/packaging/debian/maintainer CPACK_DEBIAN_PACKAGE_MAINTAINER LIMIT_COUNT 1)

# sardonyx_package(NAME SECTION section [DEPENDS …] [RECOMMENDS …] [SUGGESTS …] SYNOPSIS line DESCRIPTION text)
macro(sardonyx_package package)
  cmake_parse_arguments(ARG "" "SECTION;DEPENDS;RECOMMENDS;SUGGESTS;SYNOPSIS;DESCRIPTION" "" ${ARGN})
  string(TOUPPER ${package} name)
  set(CPACK_DEBIAN_${name}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${name}_PACKAGE_SECTION ${ARG_SECTION})
  set(CPACK_DEBIAN_${name}_PACKAGE_DEPENDS "${ARG_DEPENDS}")
  set(CPACK_DEBIAN_${name}_PACKAGE_RECOMMENDS "${ARG_RECOMMENDS}")
  set(CPACK_DEBIAN_${name}_PACKAGE_SUGGESTS "${ARG_SUGGESTS}")
  set(CPACK_DEBIAN_${name}_DESCRIPTION "${ARG_SYNOPSIS}\n${ARG_DESCRIPTION}")
endmacro()
sardonyx_package(${library_package} SECTION libs RECOMMENDS "${usual_formats}" SUGGESTS "${rare_formats}"
  SYNOPSIS "ONNX models in C++: shared library"
  DESCRIPTION "Sardonyx reads, checks, transforms, runs and trains models of the ONNX
standard. It needs no protobuf and no framework.
.
This package has the shared library.")
string(TOUPPER ${library_package} name)
set(CPACK_DEBIAN_${name}_PACKAGE_MULTIARCH same)
sardonyx_package(${development_package} SECTION libdevel DEPENDS "${library_package} (= ${version})"
  RECOMMENDS "${recommended}, pkg-config"
  SYNOPSIS "ONNX models in C++: development files"
  DESCRIPTION "Sardonyx reads, checks, transforms, runs and trains models of the ONNX
standard.
.
This package has the headers of the C++ and the C interface, the static
library, the CMake package and the files of pkg-config. What it recommends is
needed to link the static library only.")
string(TOUPPER ${development_package} name)
set(CPACK_DEBIAN_${name}_PACKAGE_MULTIARCH same)
sardonyx_package(${program_package} SECTION science DEPENDS "${library_package} (= ${version})"
  SYNOPSIS "ONNX models at the command line"
  DESCRIPTION "The program sardonyx checks, infers, converts, compares, draws, runs,
profiles and trains models of the ONNX standard. It says what is wrong with a
model, where, and what to do about it.")
sardonyx_package(${onnxruntime_package} SECTION libs RECOMMENDS "${usual_formats}" SUGGESTS "${rare_formats}"
  SYNOPSIS "ONNX models in C++: for programs made for ONNX Runtime"
  DESCRIPTION "Programs that were built for ONNX Runtime run on Sardonyx where they find
this package's libonnxruntime.so.1 instead of that library. It lies in a
folder of its own, so that only programs that are told of it find it.")
include(CPack)
