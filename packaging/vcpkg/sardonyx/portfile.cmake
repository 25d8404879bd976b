# The port of the tree that it is in: vcpkg install sardonyx --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(VCPKG_LIBRARY_LINKAGE STREQUAL "dynamic")
  set(libraries shared)
else()
  set(libraries static)
endif()
vcpkg_check_features(OUT_FEATURE_OPTIONS feature_options
  FEATURES
    images SARDONYX_IMAGES
    tools SARDONYX_BUILD_CLI
)
vcpkg_find_acquire_program(PYTHON3)
vcpkg_find_acquire_program(PKGCONFIG)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${feature_options}
    -DSARDONYX_BUILD_TESTS=OFF
    -DSARDONYX_LIBRARIES=${libraries}
    "-DPython3_EXECUTABLE=${PYTHON3}"
    "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}"
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/sardonyx)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES sardonyx AUTO_CLEAN)
endif()

file(REMOVE_RECURSE
  "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share"
  "${CURRENT_PACKAGES_DIR}/share/doc"
)
file(GLOB licences "${SOURCE_PATH}/licenses/*.txt")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" ${licences})
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
