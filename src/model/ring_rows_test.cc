// What a pass leaves in the rings besides its own rows: snapshots at any position inside a chunk,
// rows that a replay must not touch, and how many rows the replay modes run.
#include <gtest/gtest.h>

#include "model/testing/test_model.h"

namespace deepinfer {
namespace {

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

uint8_t* RowOf(SequenceKv& kv, int32_t ring, int32_t position) {
  const KvShape& shape = kv.shape();
  return kv.Ring(ring) + position % shape.ring_rows * SwaRecordBytes(shape.layout.head_dim);
}

// Memory for the rows [end - ring_rows, end) of all rings, in the layout of a snapshot.
class SavedRows {
 public:
  explicit SavedRows(const Model& model)
      : shape_(model.kv_shape()),
        bytes_(static_cast<size_t>(shape_.num_rings * shape_.RingBytes()), 0xa5) {}

  SnapshotTarget Target(int32_t num_rings, int32_t end) { return {bytes_.data(), num_rings, end}; }

  // From, or into, a sequence that stopped at `end`.
  void TakeFrom(SequenceKv& kv, int32_t num_rings, int32_t end) {
    ForRows(num_rings, end, [&](int32_t ring, int32_t position, uint8_t* row) {
      std::memcpy(row, RowOf(kv, ring, position), record());
    });
  }
  void PutInto(SequenceKv& kv, int32_t num_rings, int32_t end) {
    ForRows(num_rings, end, [&](int32_t ring, int32_t position, uint8_t* row) {
      std::memcpy(RowOf(kv, ring, position), row, record());
    });
  }

  bool operator==(const SavedRows& other) const { return bytes_ == other.bytes_; }

 private:
  size_t record() const { return static_cast<size_t>(SwaRecordBytes(shape_.layout.head_dim)); }
  template <typename Visit>
  void ForRows(int32_t num_rings, int32_t end, const Visit& visit) {
    const int32_t begin = end - shape_.ring_rows;
    for (int32_t ring = 0; ring < num_rings; ++ring) {
      uint8_t* const rows = bytes_.data() + ring * shape_.RingBytes();
      for (int32_t p = std::max(begin, 0); p < end; ++p) {
        visit(ring, p, rows + static_cast<size_t>(p - begin) * record());
      }
    }
  }

  const KvShape shape_;
  std::vector<uint8_t> bytes_;
};

std::vector<uint8_t> RingBytes(SequenceKv& kv, int32_t ring) {
  return {kv.Ring(ring), kv.Ring(ring) + kv.shape().RingBytes()};
}

void Forward(TestModel& model, const ForwardSegment& segment, ForwardObserver* observer = nullptr) {
  const ForwardBatch batch = {{segment}};
  CHECK(model.model().Forward(batch, observer).ok());
}

class Snapshots : public ::testing::TestWithParam<const char*> {};

// A chunk may be longer than the ring, and begin anywhere: at the start, where less than a ring is
// there, and behind a full one.
TEST_P(Snapshots, InsideAChunkAreWhatARunThatStoppedThereHolds) {
  TestModel model(GetParam());
  const KvShape& shape = model.model().kv_shape();
  const int32_t rows = shape.ring_rows, longest = 2 * rows + 7, length = rows + 9 + longest;
  const int32_t stride = rows > 64 ? 97 : 1;  // a large shape looks at fewer ends
  const std::vector<int32_t> tokens = TestTokens(length, model.config().vocab_size, 41);
  std::vector<SavedRows> stopped(static_cast<size_t>(length) + 1, SavedRows(model.model()));
  TestSequence steps(model, tokens);
  for (int32_t end = stride; end <= length; end += stride) {
    steps.Run(end - stride, end);
    stopped[static_cast<size_t>(end)].TakeFrom(steps.kv(), shape.num_rings, end);
  }
  for (const int32_t begin : {0, 5, rows + 9}) {
    for (int32_t end = (begin + stride - 1) / stride * stride; end <= begin + longest;
         end += stride) {
      TestSequence sequence(model, tokens);
      if (begin > 0) sequence.Run(0, begin);
      SavedRows snapshot(model.model());
      ForwardSegment segment = sequence.Segment(begin, begin + longest);
      segment.snapshot = snapshot.Target(shape.num_rings, end);
      Forward(model, segment);
      ASSERT_EQ(snapshot, stopped[static_cast<size_t>(end)]) << "begin " << begin << " end " << end;
    }
  }
}

TEST_P(Snapshots, OfSomeRingsLeaveTheOthersMemoryAlone) {
  TestModel model(GetParam());
  const int32_t encoder = model.config().FirstDecoderLayer(), end = 30, length = 40;
  TestSequence sequence(model, TestTokens(length, model.config().vocab_size, 45));
  SavedRows snapshot(model.model()), wanted(model.model());
  ForwardSegment segment = sequence.Segment(0, length);
  segment.snapshot = snapshot.Target(encoder, end);
  Forward(model, segment);
  TestSequence stopped(model, sequence.tokens);
  stopped.Run(0, end);
  wanted.TakeFrom(stopped.kv(), encoder, end);
  EXPECT_EQ(snapshot, wanted);
}

// A sequence whose rings are lost goes on from a snapshot at a page end as if nothing had happened.
TEST_P(Snapshots, PutBackTheRunGoesOnBitForBit) {
  TestModel model(GetParam());
  const KvShape& shape = model.model().kv_shape();
  const int32_t end = 2 * kTokensPerPage, length = end + shape.ring_rows + 20;
  const std::vector<int32_t> tokens = TestTokens(length, model.config().vocab_size, 42);
  TestSequence sequence(model, tokens);
  SavedRows snapshot(model.model());
  ForwardSegment segment = sequence.Segment(0, length);
  segment.logits_begin = end;
  segment.snapshot = snapshot.Target(shape.num_rings, end);
  const ForwardBatch whole = {{segment}};
  const std::span<const float> logits = model.model().Forward(whole).value();
  const std::vector<float> want(logits.begin(), logits.end());

  std::memset(sequence.kv().Ring(0), 0, static_cast<size_t>(shape.num_rings * shape.RingBytes()));
  snapshot.PutInto(sequence.kv(), shape.num_rings, end);
  EXPECT_TRUE(SameBits(want, sequence.Run(end, length)));

  // A negative control: rows of the wrong positions do change the result.
  std::memset(sequence.kv().Ring(0), 0, static_cast<size_t>(shape.num_rings * shape.RingBytes()));
  EXPECT_FALSE(SameBits(want, sequence.Run(end, length)));
}

INSTANTIATE_TEST_SUITE_P(Model, Snapshots, ::testing::Values("tiny", "stress_b"));

// With a slot but a short suffix, rows below H run again for the decoder alone.
TEST(RingRows, AReplayForTheDecoderLeavesEncoderRowsAndPagesAsTheyAre) {
  TestModel model("tiny");
  const int32_t num_rings = model.model().kv_shape().num_rings;
  const int32_t encoder = model.config().FirstDecoderLayer();
  const int32_t hit = 2 * kTokensPerPage, from = hit - 20;
  const std::vector<int32_t> tokens = TestTokens(hit + 9, model.config().vocab_size, 43);
  TestSequence sequence(model, tokens);
  sequence.Run(0, hit);
  std::vector<std::vector<uint8_t>> before;
  for (int32_t r = 0; r < num_rings; ++r) before.push_back(RingBytes(sequence.kv(), r));
  const PagedSource source = sequence.kv().Source(0);
  const auto pages = [&] {
    return std::vector<uint8_t>(source.pool, source.pool + 2 * source.page_bytes);
  };
  const std::vector<uint8_t> pages_before = pages();

  ForwardSegment segment = sequence.Segment(from, hit);
  segment.window_begin = segment.decoder_window_begin = from;
  segment.keep_entries_below = segment.keep_rings_below = hit;
  Forward(model, segment);
  EXPECT_EQ(pages(), pages_before);
  for (int32_t r = 0; r < num_rings; ++r) {
    const bool same = RingBytes(sequence.kv(), r) == before[static_cast<size_t>(r)];
    EXPECT_EQ(same, r < encoder) << "ring " << r;
  }
  // A negative control: without it the narrowed windows do change encoder rows.
  segment.keep_rings_below = 0;
  Forward(model, segment);
  EXPECT_NE(RingBytes(sequence.kv(), encoder - 1), before[static_cast<size_t>(encoder) - 1]);
}

// Such a segment usually goes on behind H: those rows are stored, and a snapshot has what the ring
// has then, not the rows that ran again.
TEST(RingRows, RowsBehindTheKeptOnesAreStored) {
  TestModel model("tiny");
  const KvShape& shape = model.model().kv_shape();
  const int32_t encoder = model.config().FirstDecoderLayer();
  const int32_t hit = kTokensPerPage, from = hit - 15, length = hit + 5;
  TestSequence sequence(model, TestTokens(length, model.config().vocab_size, 44));
  sequence.Run(0, hit);
  SavedRows before(model.model()), after(model.model()), snapshot(model.model());
  before.TakeFrom(sequence.kv(), encoder, hit);
  TestSequence untouched(model, sequence.tokens);
  before.PutInto(untouched.kv(), encoder, hit);

  ForwardSegment segment = sequence.Segment(from, length);
  segment.window_begin = segment.decoder_window_begin = from;
  segment.keep_entries_below = segment.keep_rings_below = hit;
  segment.snapshot = snapshot.Target(encoder, length);
  Forward(model, segment);
  after.TakeFrom(sequence.kv(), encoder, length);
  EXPECT_EQ(snapshot, after);
  const auto record = static_cast<size_t>(SwaRecordBytes(shape.layout.head_dim));
  for (int32_t p = length - shape.ring_rows; p < length; ++p) {
    for (int32_t r = 0; r < encoder; ++r) {
      const int same =
          std::memcmp(RowOf(sequence.kv(), r, p), RowOf(untouched.kv(), r, p), record) == 0;
      EXPECT_EQ(same, p < hit) << "ring " << r << " position " << p;
    }
  }
}

// Which rows a mode runs, counted where they enter the layers.
class RowCounter : public ForwardObserver {
 public:
  explicit RowCounter(const ModelConfig& config) : first_decoder_(config.FirstDecoderLayer()) {}
  void LayerInput(int32_t layer, const RowSet& rows, bf16*, float*) override {
    if (layer < first_decoder_) encoder = rows.num_rows();
    if (layer > first_decoder_) decoder = rows.num_rows();
  }
  int32_t encoder = 0, decoder = 0;

 private:
  const int32_t first_decoder_;
};

// Claims 2 and 3 of serving.md 19, in rows: a replay runs as many of them at any context, and the
// decoder half of a bounded prefill runs KEEP of them, wherever the prompt is cut.
TEST(RingRows, claim_2_ReplayedRowsDoNotGrowWithTheContext) {
  TestModel model("tiny");
  const int32_t window = model.config().sliding_window;
  for (const int32_t hit : {64, 256, 1024}) {
    TestSequence sequence(model, TestTokens(hit, model.config().vocab_size, 46));
    RowCounter counter(model.config());
    ForwardSegment segment = sequence.Segment(0, hit);
    Forward(model, segment);
    segment.begin = segment.window_begin = hit - window;
    segment.decoder_begin = segment.keep_entries_below = hit;
    segment.logits_begin = kNoPosition;
    Forward(model, segment, &counter);
    EXPECT_EQ(counter.encoder, window) << hit;
    EXPECT_EQ(counter.decoder, 0) << hit;
  }
}

TEST(RingRows, claim_3_TheDecoderHalfOfABoundedPrefillRunsTheKeptRowsAlone) {
  TestModel model("tiny");
  const int32_t length = 300, keep = model.model().kv_shape().ring_rows;
  const std::vector<int32_t> tokens = TestTokens(length, model.config().vocab_size, 47);
  for (const int32_t chunk : {1, 37, 128, length}) {
    TestSequence sequence(model, tokens);
    int32_t encoder = 0, decoder = 0;
    for (int32_t begin = 0; begin < length; begin += chunk) {
      RowCounter counter(model.config());
      ForwardSegment segment = sequence.Segment(begin, std::min(begin + chunk, length));
      segment.decoder_begin = segment.decoder_window_begin = length - keep;
      segment.logits_begin = length - 1;
      Forward(model, segment, &counter);
      encoder += counter.encoder;
      decoder += counter.decoder;
    }
    EXPECT_EQ(encoder, length) << "chunks of " << chunk;
    EXPECT_EQ(decoder, keep) << "chunks of " << chunk;
  }
}

}  // namespace
}  // namespace deepinfer
