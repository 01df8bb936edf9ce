// tests/serve/serve_process.h: `deepinfer serve` as a process, started and ended by a test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace deepinfer::testing {

// A fresh folder with a tiny checkpoint in it, for all tests of the program. Removed at the end.
inline const std::string& TinyFolder() {
  static const struct Folder {
    std::string path = ::testing::TempDir() + "deepinfer-serve-XXXXXX";
    Folder() {
      EXPECT_NE(mkdtemp(path.data()), nullptr);
      EXPECT_EQ(std::system((std::string(DI_MAKE_TINY) + " tiny " + path + "/tiny").c_str()), 0);
    }
    ~Folder() { std::filesystem::remove_all(path); }
  } folder;
  return folder.path;
}

class ServeProcess {
 public:
  // Its standard error goes to a file. port 0 unless `arguments` say otherwise.
  explicit ServeProcess(std::vector<std::string> arguments) {
    static int count = 0;
    log_path_ = TinyFolder() + "/log" + std::to_string(count++);
    const bool has_port =
        std::find(arguments.begin(), arguments.end(), "--port") != arguments.end();
    if (!has_port) arguments.insert(arguments.begin(), {"--port", "0"});
    arguments.insert(arguments.begin(), {DI_BINARY, "serve"});
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int log = ::open(log_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(log, STDERR_FILENO);
    ::dup2(log, STDOUT_FILENO);
    ::execv(DI_BINARY, pointers.data());
    ::_exit(127);
  }
  ~ServeProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ServeProcess(const ServeProcess&) = delete;
  ServeProcess& operator=(const ServeProcess&) = delete;

  std::string Log() const {
    std::ifstream file(log_path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Waits for the line that names the URL. 0: the process ended, or it took a minute.
  int Port() {
    constexpr std::string_view kMark = " at http://127.0.0.1:";
    for (int i = 0; i < 6000 && !Exited(); ++i) {
      const std::string log = Log();
      const size_t at = log.find(kMark);
      if (at != std::string::npos) return std::atoi(log.c_str() + at + kMark.size());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "no URL: " << Log();
    return 0;
  }
  void Signal(int signal) const { ::kill(pid_, signal); }
  pid_t pid() const { return pid_; }

  // The exit code, if it ends in time.
  std::optional<int> ExitCode() {
    for (int i = 0; i < 3000; ++i) {
      if (Exited()) return code_;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return std::nullopt;
  }

 private:
  bool Exited() {
    int status = 0;
    if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return pid_ < 0;
  }

  std::string log_path_;
  pid_t pid_ = -1;
  int code_ = -1;
};

}  // namespace deepinfer::testing
