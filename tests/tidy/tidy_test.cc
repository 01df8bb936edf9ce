#include "tidy.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace deepinfer::tidy {
namespace {

std::string Join(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

TEST(Tidy, SourceTreeKeepsTheRules) {
  std::ifstream file(DI_BINARY_DIR "/compile_commands.json");
  const std::string compiled(std::istreambuf_iterator<char>(file), {});
  const SourceTree tree = ReadSourceTree(DI_SOURCE_DIR);
  ASSERT_GT(tree.size(), 50u) << "hardly anything found under " << DI_SOURCE_DIR;
  EXPECT_EQ(Join(FindFaults(tree, compiled)), "");
}

SourceTree CleanTree() {
  return {
      {"src/base/CMakeLists.txt", "di_library(base\n  SOURCES a.cc disk.cc)\n"},
      {"src/base/a.h", "// base/a.h: a.\n#pragma once\n"},
      {"src/base/a.cc", "#include \"base/a.h\"\n// fopen( in words\nconst char* b = \"getenv\";\n"},
      {"src/base/disk.cc", "int fd = ::open(path, 0);\n"},
      {"src/kernels/CMakeLists.txt", "di_library(kernels SOURCES op/op_ref.cc)\n"},
      {"src/kernels/op/op.h", "// kernels/op/op.h: op.\n#pragma once\n"},
      {"src/kernels/op/op_ref.cc",
       "#include <cmath>\n#include \"base/a.h\"\n#include \"kernels/op/op.h\"\n"},
      {"tests/x.md", std::string(200, 'x')},
  };
}

TEST(Tidy, CleanTreeHasNoFaults) { EXPECT_EQ(Join(FindFaults(CleanTree(), "")), ""); }

// Negative controls: a clean tree with one file changed, and the one fault that must be found.
struct Planted {
  std::string name, path, text, fault;
};

class TidyFinds : public ::testing::TestWithParam<Planted> {};

TEST_P(TidyFinds, ThePlantedFaultAndNoOther) {
  SourceTree tree = CleanTree();
  tree[GetParam().path] = GetParam().text;
  EXPECT_EQ(Join(FindFaults(tree, "")), GetParam().fault + "\n");
}

const std::string kHeader = "// base/a.h: a.\n#pragma once\n";
const std::string kWord =
    "TO"
    "DO";
const std::string kPath =
    "/wo"
    "rk/x";

INSTANTIATE_TEST_SUITE_P(
    , TidyFinds,
    ::testing::Values(
        Planted{"UpwardInclude", "src/base/a.cc",
                "#include \"base/a.h\"\n#include \"kernels/op/op.h\"\n",
                "src/base/a.cc:2: base/ must not include kernels/op/op.h"},
        Planted{"OracleSeesFastForm", "src/kernels/op/op_ref.cc",
                "#include \"kernels/op/op.h\"\n#include \"kernels/cpu/simd.h\"\n",
                "src/kernels/op/op_ref.cc:2: an oracle must not include kernels/cpu/simd.h"},
        Planted{"OracleSeesFormOfItsOp", "src/kernels/op/op_ref.cc",
                "#include \"kernels/op/op.h\"\n#include \"kernels/op/cpu/op_cpu.h\"\n",
                "src/kernels/op/op_ref.cc:2: an oracle must not include kernels/op/cpu/op_cpu.h"},
        Planted{"DeadSource", "src/base/b.cc", "int b;\n",
                "src/base/b.cc:1: file that src/base/CMakeLists.txt does not build"},
        Planted{"DeadHeader", "src/base/b.h", "// base/b.h: b.\n#pragma once\n",
                "src/base/b.h:1: header that nothing includes"},
        Planted{"LongLine", "src/base/a.h", kHeader + "//" + std::string(99, 'x') + "\n",
                "src/base/a.h:3: line of 101 characters, at most 100"},
        Planted{"LongFile", "src/base/a.h", kHeader + std::string(699, '\n'),
                "src/base/a.h:701: file of 701 lines, at most 700"},
        Planted{"Clock", "src/base/a.cc",
                "#include \"base/a.h\"\nauto t = std::chrono::steady_clock::now();\n",
                "src/base/a.cc:2: \"_clock::now\" belongs behind an interface of base/"},
        Planted{"File", "src/base/a.cc", "#include \"base/a.h\"\nstd::ifstream f(p);\n",
                "src/base/a.cc:2: \"ifstream\" belongs behind an interface of base/"},
        Planted{"Socket", "src/base/a.cc", "#include \"base/a.h\"\nint s = ::socket(1, 2, 3);\n",
                "src/base/a.cc:2: \"::socket(\" belongs behind an interface of base/"},
        Planted{"Randomness", "src/base/a.cc", "#include \"base/a.h\"\nint r = rand();\n",
                "src/base/a.cc:2: \"rand\" belongs behind an interface of base/"},
        Planted{"EnvironmentAfterComment", "src/base/a.cc",
                "#include \"base/a.h\"\n/* one\n two */ auto e = getenv(\"A\");\n",
                "src/base/a.cc:3: \"getenv\" belongs behind an interface of base/"},
        Planted{"CallAfterEveryKindOfLiteral", "src/base/a.cc",
                "#include \"base/a.h\"\nauto a = R\"x(\" )\" rand)x\"; auto b = \"\\\" rand\";\n"
                "int c = 1'000 + '\"' + '\\'' + rand();\n",
                "src/base/a.cc:3: \"rand\" belongs behind an interface of base/"},
        Planted{"NoPragma", "src/base/a.h", "// base/a.h: a.\n", "src/base/a.h:1: no #pragma once"},
        Planted{"NamelessHeader", "src/base/a.h", "// something\n#pragma once\n",
                "src/base/a.h:1: a header begins with \"// base/a.h: what it owns\""},
        Planted{"LeftMark", "tests/x.md", "a\n" + kWord + ": b\n",
                "tests/x.md:2: \"" + kWord + "\" must not be committed"},
        Planted{"MachinePath", "tests/run.sh", "cd " + kPath + "\n",
                "tests/run.sh:1: \"" + kPath.substr(0, 6) + "\" must not be committed"}),
    [](const auto& info) { return info.param.name; });

TEST(Tidy, CompiledSourceNeedsNoListing) {
  SourceTree tree = CleanTree();
  tree["src/base/b.cc"] = "int b;\n";
  EXPECT_EQ(Join(FindFaults(tree, "\"file\": \"x/src/base/b.cc\"")), "");
}

TEST(Tidy, TestsMayTouchFilesAndClocks) {
  SourceTree tree = CleanTree();
  tree["src/base/CMakeLists.txt"] += "di_test(base_test SOURCES a_test.cc)\n";
  tree["src/base/a_test.cc"] = "std::ifstream f(p);\n";
  EXPECT_EQ(Join(FindFaults(tree, "")), "");
}

}  // namespace
}  // namespace deepinfer::tidy
