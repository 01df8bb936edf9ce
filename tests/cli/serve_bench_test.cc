// `bench serve` where there is nothing to measure: what a person is told.
#include "command_runner.h"

namespace deepinfer {
namespace {

using ServeBenchCommand = testing::CommandTest;

TEST_F(ServeBenchCommand, MistakesAreOneLine) {
  // Port 1 belongs to nobody.
  EXPECT_NE(Error("deepinfer bench serve --base-url http://127.0.0.1:1", 1)
                .find("http://127.0.0.1:1/v1/models: Connection refused; is a server running"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer bench serve --base-url https://host", 1).find("https is not spoken"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer bench serve --trace none.jsonl", 1).find("none.jsonl"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer bench serve --trace t --request-rate 3", 2).find("--request-rate"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer bench serve --extra-body '[1]'", 2).find("expected a JSON object"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer bench serve --random-range-ratio 1", 2).find("--random-range-ratio"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer bench serve --preconnect --request-rate 1", 2).find("--preconnect"),
            std::string::npos);
  EXPECT_NE(Error("deepinfer bench step --plot a.svg", 1).find("draws nothing"), std::string::npos);
  EXPECT_NE(Error("deepinfer bench --json serve", 2).find("serve comes first"), std::string::npos);
  EXPECT_NE(Output("deepinfer bench serve --help").find("--max-concurrency"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
