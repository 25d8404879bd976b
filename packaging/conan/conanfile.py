"""The recipe of the tree that it is in: conan create packaging/conan (Conan 2)."""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.gnu import PkgConfigDeps

required_conan_version = ">=2.1"


class SardonyxConan(ConanFile):
    name = "sardonyx"
    description = "ONNX models: read, check, transform, run and train them from C++ and C"
    license = "Apache-2.0"
    topics = ("onnx", "machine-learning", "inference")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "images": [True, False], "program": [True, False]}
    default_options = {"shared": False, "fPIC": True, "images": True, "program": False}

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._root, "CMakeLists.txt"))
        self.version = re.search(r"project\(sardonyx VERSION ([0-9.]+)", text)[1]

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "licenses/*", "cmake/*", "cli/*", "include/*", "src/*", "spec/*",
                        "tools/spec_*.py", "tools/packing_build.py"):
            copy(self, pattern, self._root, self.export_sources_folder)

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("Sardonyx is built on Linux")
        if not self.options.get_safe("fPIC", True):
            raise ConanInvalidConfiguration("Sardonyx's objects are always position independent")

    def requirements(self):
        self.requires("fmt/[>=9.1 <13]")
        self.requires("re2/[>=20220601]")
        self.requires("zlib/[>=1.2.11 <2]")
        self.requires("highway/[>=1.0.3 <2]")
        self.requires("nlohmann_json/[>=3.10 <4]")
        if self.options.images:
            self.requires("libpng/[>=1.6 <2]")
            self.requires("libjpeg-turbo/[>=2.1 <4]")
        if self.options.program:
            self.requires("cli11/[>=2.1 <3]")

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.22 <5]")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["SARDONYX_BUILD_TESTS"] = False
        toolchain.cache_variables["SARDONYX_BUILD_CLI"] = bool(self.options.program)
        toolchain.cache_variables["SARDONYX_IMAGES"] = bool(self.options.images)
        toolchain.cache_variables["SARDONYX_LIBRARIES"] = "shared" if self.options.shared else "static"
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*", os.path.join(self.source_folder, "licenses"), os.path.join(self.package_folder, "licenses"))
        # Conan writes its own, which know where its packages are.
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))
        rmdir(self, os.path.join(self.package_folder, "share", "doc"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "sardonyx")
        self.cpp_info.set_property("cmake_target_name", "sardonyx::sardonyx")
        self.cpp_info.set_property("pkg_config_name", "sardonyx")
        self.cpp_info.libs = ["sardonyx"]
        self.cpp_info.system_libs = ["pthread", "m", "dl"]
        if not self.options.shared:
            self.cpp_info.system_libs.append("stdc++")  # for programs in C
