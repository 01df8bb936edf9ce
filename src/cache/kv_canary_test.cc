// The four parts of the cache together, over bytes that say whose they are: every row of a ring and
// every token of a page carries a stamp of its position and of all tokens up to it. Whatever is
// admitted, evicted, preempted or restored, a sequence finds its own stamps and no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/rng.h"
#include "cache/host_tier.h"
#include "cache/kv_memory.h"
#include "cache/page_pool.h"
#include "cache/snapshot_table.h"

namespace deepinfer {
namespace {

constexpr int32_t kRings = 3, kEncoderRings = 2, kRows = 11, kMaxTokens = 5 * kTokensPerPage;

KvShape Shape() {
  return {.layout = MakePageLayout(32, 32, {1, 2}),
          .num_rings = kRings,
          .ring_rows = kRows,
          .verify_width = 3};
}

// Texts that share one, two or three pages with each other, with their stamps and keys.
struct Text {
  explicit Text(int32_t number) {
    PageKeyChain chain(PageKey{}, kMaxTokens);
    uint64_t stamp = 1;
    for (int32_t p = 0; p < kMaxTokens; ++p) {
      const bool shared = p < kTokensPerPage * (1 + number % 3);
      const int32_t token = shared ? p : p + 1000 * (number + 1);
      chain.Append(token);
      stamp = stamp * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(token) + 1;
      stamps.push_back(stamp);
    }
    keys.assign(chain.keys().begin(), chain.keys().end());
  }
  std::vector<uint64_t> stamps;  // [kMaxTokens], of the tokens up to each position
  std::vector<PageKey> keys;     // [pages]
};

struct Sequence {
  const Text* text = nullptr;
  int32_t num_computed = 0;
  int32_t num_restored = 0;           // of them, by a snapshot: for the rings that it has
  int32_t state = -1;                 // running
  int32_t save = -1;                  // preempted
  std::vector<int32_t> pages;         // of the device while running, of the host while preempted
  std::optional<SequenceKv> kv = {};  // while running
};

class Canary {
 public:
  Canary() {
    for (int32_t i = 0; i < 6; ++i) texts_.emplace_back(i);
  }

  void Admit(int32_t text) {
    if (states_.empty()) return;
    Sequence s{.text = &texts_[static_cast<size_t>(text)]};
    TakeState(s);
    memory_->ClearState(s.state);
    const int32_t slot = FindSnapshot(s);
    if (slot != -1) {
      const int32_t end = snapshots_.At(slot).end;
      snapshots_.Pin(slot);
      if (TakePages(s, end)) {
        EXPECT_TRUE(memory_->LoadSnapshot(slot, end, s.state, snapshots_.generation(slot)).ok());
        s.num_computed = s.num_restored = end;
        ++num_hits;
      }
      snapshots_.Unpin(slot);
    }
    ExpectOwnStamps(s);
    running_.push_back(std::move(s));
  }

  // Computes tokens one after the other; page ends are published and snapshot as they pass.
  void Extend(size_t which, int32_t count) {
    Sequence& s = running_[which];
    for (; count > 0 && s.num_computed < kMaxTokens; --count) {
      if (s.num_computed % kTokensPerPage == 0 && !AddPage(s)) return;
      Compute(s, s.num_computed++);
      if (s.num_computed % kTokensPerPage == 0) Publish(s);
    }
    ExpectOwnStamps(s);
  }

  void Finish(size_t which) {
    Sequence& s = running_[which];
    GivePagesBack(s);
    states_.push_back(s.state);
    running_.erase(running_.begin() + static_cast<int64_t>(which));
  }

  void Preempt(size_t which) {
    Sequence& s = running_[which];
    std::vector<int32_t> kept;
    for (size_t i = 0; i < s.pages.size() && !saves_.empty(); ++i) {
      const int32_t page = KeepOnHost(s, i);
      if (page == -1) break;
      kept.push_back(page);
    }
    if (kept.size() < s.pages.size() || saves_.empty()) {  // no room
      for (const int32_t page : kept) host_.Unpin(page);
      return;
    }
    s.save = saves_.back();
    saves_.pop_back();
    memory_->SaveState(s.state, s.save);
    memory_->ClearState(s.state);
    GivePagesBack(s);
    states_.push_back(s.state);
    s.pages = kept;
    preempted_.push_back(std::move(s));
    running_.erase(running_.begin() + static_cast<int64_t>(which));
    ++num_preempted;
  }

  void Resume(size_t which) {
    Sequence s = preempted_[which];
    const std::vector<int32_t> kept = s.pages;
    if (states_.empty() || std::ssize(kept) > pool_.num_available()) return;
    s.pages.clear();
    EXPECT_TRUE(pool_.Acquire(static_cast<int32_t>(kept.size()), s.pages));
    for (size_t i = 0; i < kept.size(); ++i) {
      EXPECT_TRUE(memory_->LoadPage(kept[i], s.pages[i]).ok());
      host_.Unpin(kept[i]);
    }
    TakeState(s);
    memory_->LoadState(s.save, s.state);
    saves_.push_back(s.save);
    s.kv->page_table() = s.pages;
    ExpectOwnStamps(s);
    running_.push_back(std::move(s));
    preempted_.erase(preempted_.begin() + static_cast<int64_t>(which));
  }

  void FinishAll() {
    while (!preempted_.empty()) {
      for (const int32_t page : preempted_.back().pages) host_.Unpin(page);
      preempted_.pop_back();
    }
    while (!running_.empty()) Finish(0);
    EXPECT_EQ(pool_.num_held(), 0);
    EXPECT_EQ(host_.num_pinned(), 0);
    EXPECT_EQ(snapshots_.num_pinned() + snapshots_.num_writing(), 0);
  }

  void CheckInvariants() const {
    pool_.CheckInvariants();
    host_.CheckInvariants();
    snapshots_.CheckInvariants();
  }

  size_t num_running() const { return running_.size(); }
  size_t num_waiting() const { return preempted_.size(); }
  int64_t num_evicted() const { return pool_.num_evicted(); }
  int64_t num_hits = 0, num_preempted = 0, num_loaded_pages = 0;

 private:
  static constexpr int32_t kTokenBytes = 32;  // of a page's bytes, a token's stamp

  void TakeState(Sequence& s) {
    s.state = states_.back();
    states_.pop_back();
    s.kv = memory_->SequenceOf(s.state);
  }

  uint8_t* Row(Sequence& s, int32_t ring, int32_t position) {
    return s.kv->Ring(ring) + position % kRows * SwaRecordBytes(32);
  }
  static std::vector<uint8_t> Stamp(uint64_t stamp, int32_t position, size_t num_bytes) {
    std::vector<uint8_t> bytes(num_bytes, static_cast<uint8_t>(position));
    std::memcpy(bytes.data(), &stamp, sizeof stamp);
    std::memcpy(bytes.data() + sizeof stamp, &position, sizeof position);
    return bytes;
  }
  static std::vector<uint8_t> RowStamp(const Sequence& s, int32_t ring, int32_t position) {
    const uint64_t stamp = s.text->stamps[static_cast<size_t>(position)];
    return Stamp(stamp + static_cast<uint64_t>(ring), position,
                 static_cast<size_t>(SwaRecordBytes(32)));
  }
  static std::vector<uint8_t> TokenStamp(const Sequence& s, int32_t position) {
    return Stamp(s.text->stamps[static_cast<size_t>(position)], position, kTokenBytes);
  }
  uint8_t* Token(const Sequence& s, int32_t position) {
    const int32_t page = s.pages[static_cast<size_t>(position / kTokensPerPage)];
    return memory_->Page(page) + position % kTokensPerPage * kTokenBytes;
  }

  void Compute(Sequence& s, int32_t position) {
    for (int32_t ring = 0; ring < kRings; ++ring) {
      const std::vector<uint8_t> row = RowStamp(s, ring, position);
      std::copy(row.begin(), row.end(), Row(s, ring, position));
    }
    const std::vector<uint8_t> token = TokenStamp(s, position);
    std::copy(token.begin(), token.end(), Token(s, position));
  }

  void ExpectOwnStamps(Sequence& s) {
    for (int32_t p = 0; p < s.num_computed; ++p) {
      const std::vector<uint8_t> token = TokenStamp(s, p);
      EXPECT_TRUE(std::equal(token.begin(), token.end(), Token(s, p))) << "token " << p;
    }
    for (int32_t ring = 0; ring < kRings; ++ring) {
      const int32_t first = ring < kEncoderRings ? 0 : s.num_restored;
      for (int32_t p = std::max(first, s.num_computed - kRows); p < s.num_computed; ++p) {
        const std::vector<uint8_t> row = RowStamp(s, ring, p);
        EXPECT_TRUE(std::equal(row.begin(), row.end(), Row(s, ring, p))) << "row " << p;
      }
    }
  }

  // The longest prefix that has a snapshot and all pages somewhere; -1: none.
  int32_t FindSnapshot(const Sequence& s) const {
    int32_t best = -1;
    for (const PageKey& key : s.text->keys) {
      if (pool_.Find(key) == -1 && host_.Find(key) == -1) break;
      if (const int32_t slot = snapshots_.Find(key); slot != -1) best = slot;
    }
    return best;
  }

  // Pages of positions [0, end), from the device or the host.
  bool TakePages(Sequence& s, int32_t end) {
    for (int32_t i = 0; i < end / kTokensPerPage; ++i) {
      const PageKey& key = s.text->keys[static_cast<size_t>(i)];
      if (const int32_t page = pool_.Find(key); page != -1) {
        pool_.AddReference(page);
        s.pages.push_back(page);
      } else if (const int32_t copy = host_.Find(key); copy == -1 || !AddPage(s)) {
        GivePagesBack(s);  // an eviction took it, or there is no room
        return false;
      } else {
        EXPECT_TRUE(memory_->LoadPage(copy, s.pages.back()).ok());
        EXPECT_TRUE(pool_.Publish(s.pages.back(), key, true));
        ++num_loaded_pages;
      }
    }
    s.kv->page_table() = s.pages;
    return true;
  }
  bool AddPage(Sequence& s) {
    const bool added = pool_.Acquire(1, s.pages);
    s.kv->page_table() = s.pages;
    return added;
  }
  void GivePagesBack(Sequence& s) {
    for (; !s.pages.empty(); s.pages.pop_back()) pool_.Release(s.pages.back());
  }

  // The page that ends here gets its key, a copy on the host, and the window its snapshot.
  void Publish(Sequence& s) {
    const PageKey& key = s.text->keys[static_cast<size_t>(s.num_computed / kTokensPerPage - 1)];
    pool_.Publish(s.pages.back(), key, true);
    if (host_.Find(key) == -1) {
      if (const int32_t copy = host_.Insert(key, true); copy != -1) {
        memory_->SavePage(s.pages.back(), copy);
      }
    }
    const int32_t slot = snapshots_.Acquire();
    if (slot == -1) return;
    const SnapshotTarget target = memory_->Snapshot(slot, s.num_computed);
    for (int32_t ring = 0; ring < target.num_rings; ++ring) {
      for (int32_t r = 0; r < kRows; ++r) {
        const uint8_t* const row = Row(s, ring, target.end - kRows + r);
        std::copy(row, row + SwaRecordBytes(32),
                  target.rows + (ring * kRows + r) * SwaRecordBytes(32));
      }
    }
    memory_->SealSnapshot(slot, s.state, target.end, snapshots_.generation(slot));
    snapshots_.Publish(slot, {.key = key, .end = target.end, .exact = true});
  }

  // A pinned host page with what this page holds, or -1.
  int32_t KeepOnHost(const Sequence& s, size_t i) {
    const bool full = s.num_computed >= static_cast<int32_t>(i + 1) * kTokensPerPage;
    const int32_t known = full ? host_.Find(s.text->keys[i]) : -1;
    const int32_t page = known != -1 ? known
                         : full      ? host_.Insert(s.text->keys[i], true)
                                     : host_.InsertAnonymous();
    if (page == -1) return -1;
    if (full) host_.Pin(page);
    if (known == -1) memory_->SavePage(s.pages[i], page);
    return page;
  }

  std::vector<Text> texts_;
  PagePool pool_{12};
  HostTier host_{14};
  SnapshotTable snapshots_{5};
  std::unique_ptr<KvMemory> memory_ =
      KvMemory::Create(Shape(), {.num_pages = 12,
                                 .num_states = 4,
                                 .num_host_pages = 14,
                                 .num_saves = 2,
                                 .num_slots = 5,
                                 .num_snapshot_rings = kEncoderRings})
          .value();
  std::vector<int32_t> states_ = {0, 1, 2, 3}, saves_ = {0, 1};
  std::vector<Sequence> running_, preempted_;
};

TEST(KvCanary, case_34_EverySequenceFindsItsOwnRowsThrough3000RandomSteps) {
  Canary canary;
  SeededRng rng(34);
  for (int32_t step = 0; step < 3000; ++step) {
    const uint64_t op = rng.Uniform(10);
    const auto any = [&](size_t count) { return static_cast<size_t>(rng.Uniform(count)); };
    if (op < 3) {
      canary.Admit(static_cast<int32_t>(rng.Uniform(6)));
    } else if (op < 4 && canary.num_waiting() > 0) {
      canary.Resume(any(canary.num_waiting()));
    } else if (canary.num_running() == 0) {
      continue;
    } else if (op < 7) {
      canary.Extend(any(canary.num_running()), static_cast<int32_t>(1 + rng.Uniform(120)));
    } else if (op < 8) {
      canary.Preempt(any(canary.num_running()));
    } else {
      canary.Finish(any(canary.num_running()));
    }
    ASSERT_FALSE(::testing::Test::HasFailure()) << "step " << step;
    if (step % 10 == 0) canary.CheckInvariants();
  }
  canary.FinishAll();
  canary.CheckInvariants();
  EXPECT_GT(canary.num_hits, 100);
  EXPECT_GT(canary.num_loaded_pages, 20);
  EXPECT_GT(canary.num_preempted, 100);
  EXPECT_GT(canary.num_evicted(), 100);
}

}  // namespace
}  // namespace deepinfer
