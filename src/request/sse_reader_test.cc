#include "request/sse_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace deepinfer {
namespace {

using Events = std::vector<std::string>;  // "name|data"

// Reads `pieces` one after the other.
Events Read(const std::vector<std::string>& pieces) {
  SseReader reader;
  Events events;
  for (const std::string& piece : pieces) {
    const Status status = reader.Feed(piece, [&](const SseEvent& event) {
      events.push_back(StrCat(event.name, "|", event.data));
    });
    EXPECT_TRUE(status.ok()) << status;
  }
  return events;
}

// The same events, whole, cut at every byte, cut at every two bytes, and byte by byte.
void ExpectAtEverySplit(const std::string& stream, const Events& expected) {
  EXPECT_EQ(Read({stream}), expected);
  std::vector<std::string> bytes;
  for (const char c : stream) bytes.emplace_back(1, c);
  EXPECT_EQ(Read(bytes), expected);
  for (size_t i = 0; i <= stream.size(); ++i) {
    for (size_t k = i; k <= stream.size(); ++k) {
      ASSERT_EQ(Read({stream.substr(0, i), stream.substr(i, k - i), stream.substr(k)}), expected)
          << "cut at " << i << " and " << k;
    }
  }
}

TEST(SseReader, ReadsAStreamCutAnywhere) {
  ExpectAtEverySplit("data: {\"a\":1}\n\n: keep-alive\n\ndata: h\xc3\xa9\n\ndata: [DONE]\n\n",
                     {"|{\"a\":1}", "|h\xc3\xa9", "|[DONE]"});
}

TEST(SseReader, TakesEveryLineEnd) {
  ExpectAtEverySplit("data: 1\r\n\r\ndata:2\r\rdata: 3\n\nevent: x\r\ndata: 4\n\r\n",
                     {"|1", "|2", "|3", "x|4"});
}

TEST(SseReader, JoinsDataLinesAndForgetsNames) {
  ExpectAtEverySplit("event: message_start\ndata: a\ndata:  b\ndata\nid: 7\n\ndata: c\n\n",
                     {"message_start|a\n b\n", "|c"});
}

TEST(SseReader, AnEventWithoutDataOrEndIsNone) {
  ExpectAtEverySplit(
      "\xef\xbb\xbf"
      "data: a\n\nevent: x\n\nretry: 5\n\n\n\ndata: cut off\n",
      {"|a"});
}

TEST(SseReader, CountsComments) {
  SseReader reader;
  const Status status = reader.Feed(": one\n:\n\ndata: :no\n\n", [](const SseEvent&) {});
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(reader.num_comments(), 2);
}

TEST(SseReader, RefusesAnEventWithoutEnd) {
  SseReader reader(100);
  Status status;
  int fed = 0;
  for (; fed < 50 && status.ok(); ++fed) {
    status = reader.Feed("data: 12345\n", [](const SseEvent&) { FAIL(); });
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_LT(fed, 25);
}

}  // namespace
}  // namespace deepinfer
