// kernels/testing/real_checks.h: the committed vectors at real dimensions (tests/golden/).
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace deepinfer::testing {

inline nlohmann::json RealChecks() {
  const std::string path = std::string(DI_SOURCE_DIR) + "/tests/golden/real_checks.json";
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path << " is missing";
  return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
}

}  // namespace deepinfer::testing
