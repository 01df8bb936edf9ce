// Every .scn file of this folder is a test; and a scenario that is wrong says where and why.
#include "scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace deepinfer::scenarios {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ScenarioFiles() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(DI_SOURCE_DIR "/tests/scenarios")) {
    if (entry.path().extension() == ".scn") names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ScenarioFile : public ::testing::TestWithParam<std::string> {};

TEST_P(ScenarioFile, IsAsItSays) {
  std::ifstream file(DI_SOURCE_DIR "/tests/scenarios/" + GetParam());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Status status = RunScenario(GetParam(), text);
  EXPECT_TRUE(status.ok()) << "tests/scenarios/" << MessageOf(status);
}

INSTANTIATE_TEST_SUITE_P(Files, ScenarioFile, ::testing::ValuesIn(ScenarioFiles()),
                         [](const auto& info) { return fs::path(info.param).stem().string(); });

std::string ErrorOf(std::string_view body) {
  return MessageOf(RunScenario("x.scn", StrCat("# x.scn: a fault\n", body)));
}

TEST(ScenarioRunner, SaysWhereWhatWasExpectedAndFound) {
  EXPECT_EQ(ErrorOf("engine tokens=256\nadd a prompt=300 ; step => a[0:200)\n"),
            "x.scn:3: expected 'a[0:200)', found 'a[0:256) snapshot a@256'");
  EXPECT_EQ(ErrorOf("engine\nadd a prompt=10\n\nrun => end b"),
            "x.scn:5: expected 'end b', found 'end a'");
  EXPECT_EQ(ErrorOf("engine pages=8\nfree pages=8 states=7"),
            "x.scn:3: expected 'states=7', found 'states=8'");
  EXPECT_EQ(ErrorOf("engine\nstep => a[0:1)"), "x.scn:3: expected 'a[0:1)', found 'idle'");
  EXPECT_EQ(ErrorOf("engine\nrefuse a prompt=1"),
            "x.scn:3: expected that 'a' is refused, found it admitted");
}

TEST(ScenarioRunner, SaysWhatItCannotRead) {
  EXPECT_EQ(
      ErrorOf("engine\nstop a"),
      "x.scn:3: expected one of add, cancel, clear, damage, engine, fail, free, preempt, refuse, "
      "run, step, steps, wait; found 'stop'");
  EXPECT_EQ(ErrorOf("add a prompt=1"), "x.scn:2: expected 'engine' first and once, found 'add'");
  EXPECT_EQ(ErrorOf(""), "x.scn:1: expected 'engine', found nothing");
  EXPECT_EQ(ErrorOf("engine page=8"),
            "x.scn:2: engine: nothing is known of 'page'; README.md lists what is");
  EXPECT_EQ(ErrorOf("engine pages=8k"),
            "x.scn:2: engine: expected a whole number for pages, found '8k'");
  EXPECT_EQ(ErrorOf("engine\nadd a b prompt=1"), "x.scn:3: add: expected 1 names, found 2 ('a b')");
  EXPECT_EQ(ErrorOf("engine\nadd a prompt=1\nadd a prompt=1"),
            "x.scn:4: expected a new name, found 'a' a second time");
  EXPECT_EQ(ErrorOf("engine\ncancel a"), "x.scn:3: expected a name that was added, found 'a'");
  EXPECT_EQ(ErrorOf("engine\nadd a prompt=0"), "x.scn:3: expected prompt=1 or more, found 0");
  EXPECT_EQ(ErrorOf("engine\nadd a prompt=9\nadd b prompt=9 same=a tokens=10"),
            "x.scn:4: expected tokens=0..9 of a, found 10");
  EXPECT_EQ(MessageOf(RunScenario("x.scn", "engine\n")),
            "x.scn:1: expected '# x.scn: ' and what the scenario shows, found 'engine'");
}

}  // namespace
}  // namespace deepinfer::scenarios
