// A machine with less memory than weights still answers. The limit is RLIMIT_DATA: memory that only
// a process's end gives back. Pages of mapped files do not count, the system drops them at need.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/sanitizers.h"
#include "command_runner.h"

namespace deepinfer {
namespace {

using nlohmann::json;
using testing::CommandTest;

constexpr int64_t kLimitBytes = int64_t{96} << 20;

bool IsPrime(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

// The tiny configuration with experts of 163 MB and engram tables of 59 MB.
std::string LargeConfig() {
  json config = json::parse(testing::ReadFile(DI_SOURCE_DIR "/tools/tiny/tiny.json"));
  json& text = config["text_config"];
  text["hidden_size"] = 256;
  text["moe_intermediate_size"] = 512;
  text["n_routed_experts"] = 96;
  int64_t candidate = 150'000;
  text["engram_vocab_size"] = candidate;
  for (json& rows : text["engram_num_embeddings"]) {
    rows = 0;
    for (int column = 0; column < 6; ++column, ++candidate) {
      while (!IsPrime(candidate)) ++candidate;
      rows = rows.get<int64_t>() + candidate;
    }
  }
  return config.dump();
}

// Whether this system refuses memory past the limit; tried in a child.
bool LimitIsEnforced() {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {kLimitBytes, kLimitBytes};
    const bool set = setrlimit(RLIMIT_DATA, &limit) == 0;
    void* const at =
        mmap(nullptr, 2 * kLimitBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    _exit(set && at == MAP_FAILED ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class MemoryLimit : public CommandTest {
 protected:
  void SetUp() override {
#if DI_SANITIZED
    GTEST_SKIP() << "a sanitizer's own memory is larger than the limit";
#endif
    if (!LimitIsEnforced()) GTEST_SKIP() << "this system does not enforce RLIMIT_DATA";
    CommandTest::SetUp();
  }

  // Small stacks: those of sleeping threads count in full.
  static std::string Limited(const std::string& line) {
    return "ulimit -s 1024; ulimit -d " + std::to_string(kLimitBytes / 1024) + "; " + line;
  }

  const std::string generate_ =
      "deepinfer generate --model large --input in.jsonl --threads 2 --max-model-len 256 "
      "--max-num-batched-tokens 256 ";
};

TEST_F(MemoryLimit, ExpertsAndEngramOnDiskAnswerWhereMemoryDoesNotHoldThem) {
  Write("large.json", LargeConfig());
  ASSERT_EQ(Shell(DI_MAKE_TINY " large.json large 1").exit_code, 0);
  Write("in.jsonl", R"({"prompt_token_ids":[0,17,33,401,77,250,18,19],"max_tokens":8,"seed":1})");
  const std::string expected = Output(generate_);
  EXPECT_EQ(json::parse(expected)["choices"][0]["token_ids"].size(), 8u);

  const std::string refused = Error(Limited(generate_ + "--engram ram"), 1);
  EXPECT_NE(refused.find("packed weights: the system does not give "), std::string::npos)
      << refused;
  EXPECT_NE(refused.find("--experts disk"), std::string::npos) << refused;

  // A first start, which makes the cache, and a later one.
  const std::string disk =
      "--experts disk --engram disk --weights-cache cache --expert-cache 8000000";
  EXPECT_EQ(Output(Limited(generate_ + disk)), expected);
  EXPECT_EQ(Output(Limited(generate_ + disk)), expected);
  EXPECT_EQ(Output(Limited(generate_ + "--experts mmap --engram mmap --weights-cache cache")),
            expected);
}

TEST_F(MemoryLimit, MemoryThatIsNotThereIsALine) {
  EXPECT_EQ(Error(Limited("deepinfer generate --prompt a --kv-cache-bytes 500000000"), 1),
            "deepinfer generate: KV pages: the system does not give 499997760 bytes of memory");
  const std::string scratch = "deepinfer generate --prompt a --max-num-batched-tokens 32768";
  EXPECT_EQ(Error(Limited(scratch), 1),
            "deepinfer: the system gives no more memory; give it more, or ask for less (--help)");
}

}  // namespace
}  // namespace deepinfer
