# Third-party packages, all from Debian or Ubuntu (tools/setup.sh installs them).
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
find_package(CLI11 REQUIRED)
# Header-only: Beast and Asio, in a few files of request/ and apps/.
find_package(Boost 1.81 REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
# Header-only: the packaged library is built with exceptions, which we switch off.
find_path(DI_TOMLPLUSPLUS toml++/toml.h REQUIRED)
if(DI_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
