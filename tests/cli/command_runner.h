// tests/cli/command_runner.h: runs the real binary in a folder of its own, as a person would.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace deepinfer::testing {

struct CommandResult {
  int exit_code = -1;
  std::string out, err;
};

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Quoted for the shell.
inline std::string Quote(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// A fresh folder with a tiny checkpoint in it. `deepinfer` in a command line is the binary under
// test; the folder is the current one, and no variable of the person who runs the tests is seen.
class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "deepinfer-cli-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ASSERT_EQ(Shell(std::string(DI_MAKE_TINY) + " tiny tiny").exit_code, 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  CommandResult Shell(const std::string& line) {
    const std::string command =
        "cd " + Quote(folder_) + " && env -i PATH=\"$PATH\" HOME=" + Quote(folder_) +
        " DEEPINFER_HF_MODEL_DIR=tiny bash -c " +
        Quote("deepinfer() { " DI_BINARY " \"$@\"; }; " + line) + " >out.txt 2>err.txt </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(Path("out.txt")),
            ReadFile(Path("err.txt"))};
  }
  // The whole standard output of a command that must succeed.
  std::string Output(const std::string& line) {
    const CommandResult result = Shell(line);
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
    return result.out;
  }
  // The one line of a command that must fail before it says anything else.
  std::string Error(const std::string& line, int exit_code) {
    const CommandResult result = Shell(line);
    EXPECT_EQ(result.exit_code, exit_code) << line << "\n" << result.out << result.err;
    std::vector<std::string> errors;
    for (const std::string& text : Lines(result.err)) {
      if (text.starts_with("deepinfer")) errors.push_back(text);
    }
    EXPECT_EQ(errors.size(), 1u) << line << "\n" << result.err;
    return errors.empty() ? "" : errors[0];
  }

  std::filesystem::path Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) { WriteFile(Path(name), text); }

  std::string folder_;
};

}  // namespace deepinfer::testing
