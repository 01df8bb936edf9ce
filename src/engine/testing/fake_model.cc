#include "engine/testing/fake_model.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/rng.h"

namespace deepinfer::testing {
namespace {

constexpr int32_t kDim = 32;
constexpr uint64_t kStart = 7;  // hash of no tokens

struct Record {
  uint64_t hash;
  int32_t position;
};

uint64_t Mix(uint64_t hash, int32_t token) {
  hash = (hash ^ static_cast<uint64_t>(token + 1)) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

uint8_t* PageRecord(const SequenceKv& kv, int32_t position) {
  CHECK_LT(position / kTokensPerPage, std::ssize(kv.page_table()));
  return kv.Source(0).GlobalRecord(position, kDim);
}

uint8_t* RingRecord(SequenceKv& kv, int32_t ring, int32_t position) {
  return kv.Ring(ring) + position % kv.shape().ring_rows * SwaRecordBytes(kDim);
}

Record Read(const uint8_t* bytes) {
  Record record;
  std::memcpy(&record.hash, bytes, sizeof record.hash);
  std::memcpy(&record.position, bytes + sizeof record.hash, sizeof record.position);
  return record;
}

void Write(uint8_t* bytes, const Record& record) {
  std::memcpy(bytes, &record.hash, sizeof record.hash);
  std::memcpy(bytes + sizeof record.hash, &record.position, sizeof record.position);
}

std::vector<float> HashLogits(uint64_t hash, int32_t vocab_size) {
  SeededRng rng(hash);
  std::vector<float> row;
  for (int32_t i = 0; i < vocab_size; ++i) {
    row.push_back(i == FakeModel::kEos ? -100.0f : static_cast<float>(4 * rng.UniformDouble()));
  }
  return row;
}

}  // namespace

std::vector<float> FakeModel::LogitsAfter(std::span<const int32_t> tokens, int32_t vocab_size) {
  uint64_t hash = kStart;
  for (const int32_t token : tokens) hash = Mix(hash, token);
  return HashLogits(hash, vocab_size);
}

FakeModel::FakeModel(int32_t vocab_size, LogitsFn logits)
    : vocab_size_(vocab_size), logits_fn_(std::move(logits)) {}

KvShape FakeModel::Shape() {
  return {.layout = MakePageLayout(kDim, kDim, {1}),
          .num_rings = kEncoderRings + kDecoderRings,
          .ring_rows = kWindow + kVerifyWidth,
          .verify_width = kVerifyWidth};
}

StatusOr<std::span<const float>> FakeModel::Forward(const ForwardBatch& batch) {
  logits_.clear();
  pass_rows_.push_back(0);
  if (Fails(batch)) {
    for (const ForwardSegment& segment : batch.segments) WriteGarbage(segment);
    return Internal("layer 3: cannot read");
  }
  for (const ForwardSegment& segment : batch.segments) {
    pass_rows_.back() += segment.end - segment.begin;
    RunSegment(segment);
  }
  num_rows_ += pass_rows_.back();
  return logits_;
}

bool FakeModel::Fails(const ForwardBatch& batch) {
  if (std::ssize(pass_rows_) == failing_pass_) return true;
  if (num_failing_passes_ > 0) {
    --num_failing_passes_;
    return true;
  }
  const auto has_token = [this](const ForwardSegment& s) {
    return std::find(s.tokens + s.begin, s.tokens + s.end, failing_token_) != s.tokens + s.end;
  };
  return std::any_of(batch.segments.begin(), batch.segments.end(), has_token);
}

// What the layers before the failing one wrote.
void FakeModel::WriteGarbage(const ForwardSegment& s) {
  for (int32_t p = std::max(s.begin, s.keep_entries_below); p < s.end; ++p) {
    Write(PageRecord(*s.kv, p), {0, -1});
  }
  const int32_t rows = s.kv->shape().ring_rows;
  for (int32_t p = std::max({s.begin, s.keep_rings_below, s.end - rows}); p < s.end; ++p) {
    Write(RingRecord(*s.kv, 0, p), {0, -1});
  }
}

void FakeModel::RunSegment(const ForwardSegment& s) {
  CHECK_LT(s.begin, s.end);
  hashes_.clear();
  for (int32_t p = s.begin; p < s.end; ++p) {
    uint64_t hash = kStart;
    if (p > s.begin) {
      hash = hashes_.back();
    } else if (p > 0) {
      const Record before = Read(PageRecord(*s.kv, p - 1));
      CHECK_EQ(before.position, p - 1);
      hash = before.hash;
    }
    hash = Mix(hash, s.tokens[p]);
    hashes_.push_back(hash);
    uint8_t* const record = PageRecord(*s.kv, p);
    if (p >= s.keep_entries_below) {
      Write(record, {hash, p});
    } else {  // what a prefix hit brought is what this row would have written
      CHECK_EQ(Read(record).hash, hash);
      CHECK_EQ(Read(record).position, p);
    }
    for (int32_t ring = 0; ring < kEncoderRings; ++ring) {
      CheckWindow(s, ring, p, s.window_begin, s.begin);
    }
    if (p < s.decoder_begin) continue;
    const int32_t narrowed = p >= s.decoder_window_begin ? s.decoder_window_begin : 0;
    for (int32_t ring = kEncoderRings; ring < Shape().num_rings; ++ring) {
      CheckWindow(s, ring, p, narrowed, std::max(s.begin, s.decoder_begin));
    }
    if (p >= s.logits_begin) AddLogits(s, p);
  }
  CHECK_LE(s.decoder_begin, std::max(s.logits_begin, s.begin));
  StoreRings(s);
}

// What `position` sees of a ring. Rows from stored_from on are of this pass, not in the ring yet.
void FakeModel::CheckWindow(const ForwardSegment& s, int32_t ring, int32_t position, int32_t begin,
                            int32_t stored_from) {
  for (int32_t q = std::max({0, begin, position - kWindow + 1}); q < position; ++q) {
    if (q >= stored_from) return;
    const Record record = Read(RingRecord(*s.kv, ring, q));
    CHECK_EQ(record.position, q);
    CHECK_EQ(record.hash, Read(PageRecord(*s.kv, q)).hash);
  }
}

void FakeModel::StoreRings(const ForwardSegment& s) {
  const int32_t rows = s.kv->shape().ring_rows;
  for (int32_t ring = 0; ring < Shape().num_rings; ++ring) {
    const bool encoder = ring < kEncoderRings;
    const int32_t first = encoder ? s.begin : std::clamp(s.decoder_begin, s.begin, s.end);
    const int32_t kept_below = encoder ? s.keep_rings_below : 0;
    const auto row_of = [&](int32_t p) {
      return Record{hashes_[static_cast<size_t>(p - s.begin)], p};
    };
    if (s.snapshot.rows != nullptr && ring < s.snapshot.num_rings) {
      CHECK_LE(s.begin, s.snapshot.end);
      CHECK_LE(s.snapshot.end, s.end);
      for (int32_t p = std::max(0, s.snapshot.end - rows); p < s.snapshot.end; ++p) {
        uint8_t* const to = s.snapshot.rows + (int64_t{ring} * rows + p - s.snapshot.end + rows) *
                                                  SwaRecordBytes(kDim);
        if (p >= std::max(first, kept_below)) {
          Write(to, row_of(p));
        } else {
          std::memcpy(to, RingRecord(*s.kv, ring, p), static_cast<size_t>(SwaRecordBytes(kDim)));
        }
      }
    }
    for (int32_t p = std::max({first, kept_below, s.end - rows}); p < s.end; ++p) {
      Write(RingRecord(*s.kv, ring, p), row_of(p));
    }
  }
}

void FakeModel::AddLogits(const ForwardSegment& s, int32_t position) {
  std::vector<float> row;
  if (logits_fn_) {
    row = logits_fn_({s.tokens, static_cast<size_t>(position) + 1});
  } else {
    row = HashLogits(hashes_.back(), vocab_size_);
  }
  if (s.tokens[position] == spoiled_token_) row[0] = std::numeric_limits<float>::quiet_NaN();
  logits_.insert(logits_.end(), row.begin(), row.end());
}

}  // namespace deepinfer::testing
