"""The port of vcpkg and the recipe of Conan, as far as they can be checked without these tools."""

from __future__ import annotations

import ast
import fnmatch
import json
import re
import subprocess

from conftest import ROOT

PORT = ROOT / "packaging" / "vcpkg" / "sardonyx"
RECIPE = ROOT / "packaging" / "conan" / "conanfile.py"
VERSION = re.search(r"project\(sardonyx VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def options() -> set[str]:
    """Of the build, by CMake's files."""
    text = "".join(path.read_text() for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")])
    return set(re.findall(r"option\((SARDONYX_\w+)", text)) | set(re.findall(r"set\((SARDONYX_\w+) .*CACHE", text))


def required_libraries() -> set[str]:
    text = (ROOT / "CMakeLists.txt").read_text() + (ROOT / "cli" / "CMakeLists.txt").read_text()
    return set(re.findall(r"find_package\((\w+) REQUIRED", text)) | set(re.findall(r"pkg_check_modules\((\w+) REQUIRED", text))


def test_the_port_of_vcpkg():
    port = json.loads((PORT / "vcpkg.json").read_text())
    assert (port["name"], port["version"], port["license"]) == ("sardonyx", VERSION, "Apache-2.0")
    names = [one if isinstance(one, str) else one["name"] for one in port["dependencies"]]
    assert names == sorted(names), "vcpkg's format sorts dependencies"
    assert set(port["default-features"]) <= set(port["features"])
    of_features = [name for feature in port["features"].values() for name in feature["dependencies"]]
    theirs = {"fmt": "fmt", "Threads": None, "ZLIB": "zlib", "PNG": "libpng", "JPEG": "libjpeg-turbo", "nlohmann_json": "nlohmann-json",
              "Python3": None, "PkgConfig": None, "hwy": "highway", "re2": "re2", "CLI11": "cli11"}
    assert required_libraries() == set(theirs), "a library that packaging/ does not know"
    assert {name for name in theirs.values() if name} == set(names + of_features) - {"vcpkg-cmake", "vcpkg-cmake-config"}


def test_the_portfile_runs(tmp_path):
    """With vcpkg's functions replaced by ones that look at what they are given."""
    (tmp_path / "run.cmake").write_text(f"""
cmake_policy(VERSION 3.22)
set(VCPKG_LIBRARY_LINKAGE static)
set(FEATURES core images tools)
set(PORT sardonyx)
set(CURRENT_PACKAGES_DIR {tmp_path}/packages)
function(vcpkg_check_features)
  cmake_parse_arguments(ARG "" "OUT_FEATURE_OPTIONS" "FEATURES" ${{ARGN}})
  message(STATUS "features=${{ARG_FEATURES}}")
  set(${{ARG_OUT_FEATURE_OPTIONS}} -DSARDONYX_IMAGES=ON -DSARDONYX_BUILD_CLI=ON PARENT_SCOPE)
endfunction()
function(vcpkg_find_acquire_program name)
  set(${{name}} /somewhere/${{name}} PARENT_SCOPE)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(ARG "" "SOURCE_PATH" "OPTIONS" ${{ARGN}})
  if(ARG_UNPARSED_ARGUMENTS OR NOT EXISTS ${{ARG_SOURCE_PATH}}/CMakeLists.txt)
    message(FATAL_ERROR "configure: ${{ARGN}}")
  endif()
  message(STATUS "options=${{ARG_OPTIONS}}")
endfunction()
function(vcpkg_cmake_install)
endfunction()
function(vcpkg_cmake_config_fixup)
  message(STATUS "fixup=${{ARGN}}")
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_copy_tools)
  message(STATUS "tools=${{ARGN}}")
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(ARG "" "" "FILE_LIST" ${{ARGN}})
  list(LENGTH ARG_FILE_LIST count)
  foreach(file IN LISTS ARG_FILE_LIST)
    if(NOT EXISTS ${{file}})
      message(FATAL_ERROR "no ${{file}}")
    endif()
  endforeach()
  message(STATUS "licences=${{count}}")
endfunction()
include({PORT}/portfile.cmake)
""")
    made = subprocess.run(["cmake", "-P", tmp_path / "run.cmake"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    said = made.stdout
    passed = set(re.findall(r"-D(SARDONYX_\w+)", said)) | set(re.findall(r"SARDONYX_\w+", re.search("features=.*", said)[0]))
    assert passed <= options(), f"there is no option {passed - options()}"
    assert "-DSARDONYX_LIBRARIES=static" in said and "fixup=CONFIG_PATH;lib/cmake/sardonyx" in said
    assert int(re.search(r"licences=(\d+)", said)[1]) == 1 + len(list((ROOT / "licenses").glob("*.txt")))
    assert (tmp_path / "packages" / "share" / "sardonyx" / "usage").exists()


def test_the_recipe_of_conan():
    text = RECIPE.read_text()
    ast.parse(text)
    passed = set(re.findall(r'"(SARDONYX_\w+)"', text))
    assert passed and passed <= options()
    patterns = re.findall(r'"([^"]+)"', re.search(r"for pattern in \((.*?)\):", text, re.S)[1])
    listed = subprocess.run(["git", "ls-files", "CMakeLists.txt", "LICENSE", "licenses", "cmake", "cli", "include", "src", "spec",
                             "tools/spec_format.py", "tools/spec_to_cc.py"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    missing = [name for name in listed if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    assert missing == [], "files that the build needs are not exported"
    required = set(re.findall(r'self\.requires\("([\w.-]+)/', text))
    assert required == {"fmt", "re2", "zlib", "highway", "nlohmann_json", "libpng", "libjpeg-turbo", "cli11"}
