# Libraries of Debian 12 instead of packages of Conan: conan create packaging/conan -pr packaging/conan/debian.profile
include(default)

[settings]
compiler.cppstd=20

[platform_requires]
cli11/2.3.2
fmt/9.1.0
highway/1.0.3
libjpeg-turbo/2.1.5
libpng/1.6.39
nlohmann_json/3.11.2
re2/20220601
zlib/1.2.13

[platform_tool_requires]
cmake/3.25.1
