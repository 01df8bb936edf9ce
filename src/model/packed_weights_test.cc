#include "model/packed_weights.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "base/system_cache.h"
#include "kernels/formats/panels.h"
#include "model/load_plan.h"
#include "model/testing/tiny_checkpoint.h"

namespace deepinfer {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

constexpr char kWqA[] = "layers.0.attn.wq_a.weight";
constexpr char kCache[] = "cache";

std::unique_ptr<Checkpoint> OpenUnscanned(Disk& disk, const std::string& directory = "model") {
  return Checkpoint::Open(disk, directory, {.scan_weights = false}).value();
}

std::vector<uint8_t> Plain(const Matrix& m) {
  std::vector<uint8_t> panels(static_cast<size_t>(PackedBytes(m.format, m.rows, m.cols)));
  PackPanelsPlain(m, 0, NumPanels(m.rows), panels.data());
  return panels;
}

// Every matrix is what the plain form makes of the checkpoint's bytes, and lies where the layout
// says.
void ExpectRight(const Checkpoint& checkpoint, const PackedWeights& packed) {
  ModelWeights weights = packed.weights();
  const std::vector<Matrix*> matrices = PackedMatrices(weights);
  ASSERT_EQ(matrices.size(), packed.layout().entries().size());
  ASSERT_FALSE(matrices.empty());
  const uint8_t* const image = matrices[0]->panels;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const Matrix& m = *matrices[i];
    const std::string name = checkpoint.items()[checkpoint.ItemAt(m.data)].spec->name;
    EXPECT_TRUE(m.usual_scales) << name;
    ASSERT_EQ(m.panels, image + packed.layout().entries()[i].offset) << name;
    const std::vector<uint8_t> expected = Plain(m);
    ASSERT_EQ(std::memcmp(m.panels, expected.data(), expected.size()), 0) << name;
  }
}

class PackedWeightsTest : public ::testing::Test {
 protected:
  PackedWeightsTest() { tiny_.Write(); }

  StatusOr<std::unique_ptr<PackedWeights>> TryLoad(PackOptions options = {}) {
    checkpoint_ = OpenUnscanned(tiny_.disk);
    options.disk = &tiny_.disk;
    return PackedWeights::Load(*checkpoint_, options);
  }
  StatusOr<std::unique_ptr<PackedWeights>> TryLoadCached(bool scan = true) {
    return TryLoad({.scan = scan, .cache_directory = kCache});
  }
  // The files of the cache and whether each is unfinished.
  std::vector<std::string> CacheFiles() { return tiny_.disk.List(kCache).value(); }
  std::string CachePath() { return StrCat(kCache, "/", CacheFiles().at(0)); }

  // Changes bytes of a file where it lies.
  void Overwrite(const std::string& path, int64_t offset, std::vector<uint8_t> bytes) {
    ASSERT_TRUE(tiny_.disk.OpenUpdate(path).value()->WriteAt(offset, bytes).ok());
  }

  TinyCheckpoint tiny_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

TEST_F(PackedWeightsTest, SameImageForAnyThreadsAndAnyWayOfReading) {
  for (const int num_threads : {1, 3}) {
    for (const bool direct : {true, false}) {
      ThreadPool pool(num_threads);
      const auto packed = TryLoad({.pool = &pool, .direct = direct});
      ASSERT_TRUE(packed.ok()) << packed.status();
      ExpectRight(*checkpoint_, **packed);
      EXPECT_TRUE((*packed)->scan().done);
      EXPECT_FALSE((*packed)->image_file().has_value());
    }
  }
}

TEST_F(PackedWeightsTest, AScanFindsWhatOpeningFinds) {
  tiny_.At("layers.0.attn.wq_a.scale").bytes[0] = 0;
  tiny_.At("layers.1.ffn.experts.3.w2.scale").bytes[9] = 200;
  tiny_.Write();
  const ScanReport expected = Checkpoint::Open(tiny_.disk, "model").value()->scan();
  const ScanReport found = TryLoad().value()->scan();
  EXPECT_EQ(found.num_unusual_scales, 2);
  EXPECT_EQ(found.num_unusual_scales, expected.num_unusual_scales);
  EXPECT_EQ(found.num_unusual_tensors, expected.num_unusual_tensors);
  EXPECT_EQ(found.first_unusual_tensor, expected.first_unusual_tensor);
  EXPECT_EQ(found.has_unusual, expected.has_unusual);
  EXPECT_EQ(found.engram_scale_min, expected.engram_scale_min);
}

TEST_F(PackedWeightsTest, MatricesWithUnusualScalesHaveNoPanels) {
  tiny_.At("layers.0.attn.wq_a.scale").bytes[0] = 0;
  tiny_.At("layers.1.ffn.experts.3.w2.scale").bytes[9] = 200;
  tiny_.Write();
  // From the checkpoint, scanned or not, and out of the cache; in memory or not.
  for (const bool scan : {true, false, false}) {
    for (const bool keep : {true, false}) {
      const auto packed =
          TryLoad({.scan = scan, .cache_directory = kCache, .keep_experts = keep}).value();
      const ModelWeights& weights = packed->weights();
      EXPECT_FALSE(weights.layers[0].wq_a.usual_scales);
      EXPECT_EQ(weights.layers[0].wq_a.panels, nullptr);
      EXPECT_FALSE(weights.layers[1].experts[3].w2.usual_scales);
      EXPECT_EQ(weights.layers[1].experts[3].w2.panels, nullptr);
      EXPECT_TRUE(weights.layers[1].experts[3].w1.usual_scales);
      EXPECT_EQ(weights.layers[1].experts[3].w1.panels != nullptr, keep);
      EXPECT_NE(weights.layers[0].wq_b.panels, nullptr);
    }
  }
}

TEST_F(PackedWeightsTest, DamagedWeightsAreRefusedAsOnOpening) {
  tiny_.At(kWqA).bytes[5] = 0x7f;
  tiny_.At("embed.weight").bytes[1] = 0xff;  // plain
  tiny_.At("embed.weight").bytes[0] = 0x80;
  tiny_.At("layers.1.ffn.experts.3.w2.scale").bytes[9] = 255;
  std::reverse(tiny_.tensors.begin(),
               tiny_.tensors.end());  // files in another order than the model
  tiny_.Write();
  const std::string expected = MessageOf(Checkpoint::Open(tiny_.disk, "model").status());
  EXPECT_HAS(expected, "; 2 more tensors have such values");
  EXPECT_EQ(MessageOf(TryLoad().status()), expected);
  EXPECT_EQ(MessageOf(TryLoadCached().status()), expected);
  // The damaged pieces were not kept: the next start refuses them again.
  EXPECT_EQ(MessageOf(TryLoadCached().status()), expected);
  EXPECT_TRUE(TryLoad({.scan = false}).ok());
}

TEST_F(PackedWeightsTest, ProgressEndsAtTheTotal) {
  int64_t done = 0, total = 0;
  const auto progress = [&](int64_t d, int64_t t) {
    EXPECT_GE(d, done);
    done = d;
    total = t;
  };
  ASSERT_TRUE(TryLoad({.progress = progress}).ok());
  EXPECT_EQ(done, total);
  EXPECT_EQ(total, checkpoint_->census().total.num_bytes);
}

TEST_F(PackedWeightsTest, ALaterStartReadsTheCacheOnly) {
  const auto first = TryLoadCached().value();
  EXPECT_EQ(first->times().cache_bytes, 0);
  EXPECT_EQ(first->times().source_bytes, checkpoint_->census().total.num_bytes);
  ASSERT_TRUE(first->image_file().has_value());
  EXPECT_EQ(first->image_file()->path, CachePath());

  for (const int num_threads : {1, 3}) {
    ThreadPool pool(num_threads);
    const auto second = TryLoad({.pool = &pool, .cache_directory = kCache}).value();
    EXPECT_EQ(second->times().source_bytes, 0);
    EXPECT_GT(second->times().cache_bytes, 0);
    ExpectRight(*checkpoint_, *second);
    // What is mapped is what is in memory.
    const auto file = tiny_.disk.OpenRead(second->image_file()->path).value();
    const std::span<const uint8_t> bytes = file->Map().value();
    EXPECT_EQ(std::memcmp(bytes.data() + second->image_file()->image_offset,
                          second->weights().layers[0].wq_a.panels,
                          static_cast<size_t>(second->layout().image_bytes())),
              0);
  }
}

TEST_F(PackedWeightsTest, ExpertsCanStayInTheFile) {
  for (int round = 0; round < 2; ++round) {
    const auto packed = TryLoad({.cache_directory = kCache, .keep_experts = false}).value();
    EXPECT_EQ(packed->num_bytes(), packed->layout().routed_experts_begin());
    EXPECT_NE(packed->weights().layers[0].wq_a.panels, nullptr);
    const Matrix& w3 = packed->weights().layers[2].experts[5].w3;
    EXPECT_EQ(w3.panels, nullptr);
    ASSERT_TRUE(packed->image_file().has_value());
    const PackedRange range = packed->layout().ExpertParts(2, 5)[1];
    std::vector<uint8_t> stored(static_cast<size_t>(range.bytes));
    ASSERT_TRUE(tiny_.disk.OpenRead(packed->image_file()->path)
                    .value()
                    ->ReadAt(packed->image_file()->image_offset + range.offset, stored)
                    .ok());
    EXPECT_EQ(stored, Plain(w3));
    // The second start leaves them unread.
    if (round == 1) {
      EXPECT_LE(packed->times().cache_bytes, packed->layout().routed_experts_begin());
    }
  }
}

TEST_F(PackedWeightsTest, AKilledRunGoesOnWhereItWas) {
  // The last file's last byte is read last: everything else is packed by then.
  const std::string shard = StrCat("model/", OpenUnscanned(tiny_.disk)->file_names().back());
  const int64_t last = std::ssize(tiny_.disk.ReadText(shard).value()) - 1;
  tiny_.disk.FailReadsAt(shard, last);
  EXPECT_EQ(TryLoadCached().status().code(), StatusCode::kInternal);
  ASSERT_EQ(CacheFiles().size(), 1u);
  EXPECT_HAS(CachePath(), ".packed.partial");
  tiny_.disk.FailReadsAt(shard, -1);

  const auto packed = TryLoadCached().value();
  ExpectRight(*checkpoint_, *packed);
  EXPECT_GT(packed->times().cache_bytes, 0);
  EXPECT_EQ(CacheFiles().size(), 1u);
  EXPECT_EQ(CachePath(), packed->image_file()->path);
  EXPECT_EQ(TryLoadCached().value()->times().source_bytes, 0);
}

// Anything that a crash leaves behind: records without their bytes.
TEST_F(PackedWeightsTest, AJournalIsBelievedOnlyWithItsChecksums) {
  const auto first = TryLoadCached().value();
  const std::string path = CachePath();
  ASSERT_TRUE(tiny_.disk.Rename(path, path + ".partial").ok());
  Overwrite(path + ".partial", first->image_file()->image_offset, std::vector<uint8_t>(64));
  const auto packed = TryLoadCached().value();
  ExpectRight(*checkpoint_, *packed);
  EXPECT_GT(packed->times().cache_bytes, packed->times().source_bytes);
  EXPECT_EQ(CachePath(), path);
}

TEST_F(PackedWeightsTest, DamageCostsThePieceAndIsRepaired) {
  const auto first = TryLoadCached().value();
  const int64_t image = first->image_file()->image_offset;
  const std::vector<PackedRange>& entries = first->layout().entries();
  struct Case {
    const char* what;
    int64_t offset;
  };
  const Case cases[] = {{"a weight", image + entries[40].offset + 77},
                        {"the last weight", image + entries.back().end() - 1},
                        {"a checksum", kPackedAlign + 16 * 3},
                        {"a count of unusual scales", kPackedAlign + 16 * 4 + 8},
                        {"a seal", kPackedAlign + 16 * 5 + 12}};
  for (const auto& [what, offset] : cases) {
    SCOPED_TRACE(what);
    const std::string text = tiny_.disk.ReadText(CachePath()).value();
    Overwrite(CachePath(), offset,
              {static_cast<uint8_t>(text[static_cast<size_t>(offset)] ^ 0x40)});
    const auto packed = TryLoadCached().value();
    ExpectRight(*checkpoint_, *packed);
    EXPECT_EQ(packed->scan().num_unusual_scales, 0);
    EXPECT_TRUE(tiny_.disk.ReadText(CachePath()).value() == text);
    EXPECT_EQ(TryLoadCached().value()->times().source_bytes, 0);
  }
}

TEST_F(PackedWeightsTest, TruncatedCachesAreFilledUp) {
  ASSERT_TRUE(TryLoadCached().ok());
  const std::string whole = tiny_.disk.ReadText(CachePath()).value();
  for (const int64_t size : {std::ssize(whole) / 2, kPackedAlign + 5, int64_t{100}, int64_t{0}}) {
    SCOPED_TRACE(size);
    tiny_.disk.Truncate(CachePath(), size);
    const auto packed = TryLoadCached().value();
    ExpectRight(*checkpoint_, *packed);
    EXPECT_TRUE(packed->image_file().has_value());
    EXPECT_EQ(CacheFiles().size(), 1u);
    EXPECT_TRUE(tiny_.disk.ReadText(CachePath()).value() == whole);
  }
}

// Nothing reads experts that stay in the file: its size says whether they are there.
TEST_F(PackedWeightsTest, TruncatedCachesAreFilledUpWhereExpertsStayInThem) {
  ASSERT_TRUE(TryLoadCached().ok());
  const std::string path = CachePath(), whole = tiny_.disk.ReadText(path).value();
  const int64_t size = std::ssize(whole);
  for (const char* name : {"", ".partial"}) {  // cut with its final name, or as a journal
    for (const int64_t kept : {size - 1, size - kPackedAlign, size / 2}) {
      SCOPED_TRACE(StrCat(name, " ", kept));
      ASSERT_TRUE(*name == '\0' || tiny_.disk.Rename(path, path + name).ok());
      tiny_.disk.Truncate(path + name, kept);
      const auto packed = TryLoad({.cache_directory = kCache, .keep_experts = false}).value();
      EXPECT_GT(packed->times().source_bytes, 0);
      EXPECT_LT(packed->times().source_bytes, checkpoint_->census().total.num_bytes);
      EXPECT_TRUE(packed->image_file().has_value());
      EXPECT_TRUE(tiny_.disk.ReadText(path).value() == whole);
    }
  }
}

TEST_F(PackedWeightsTest, AnotherCheckpointsOrVersionsCacheIsNotTaken) {
  ASSERT_TRUE(TryLoadCached().ok());
  const std::string path = CachePath(), whole = tiny_.disk.ReadText(path).value();
  for (const int64_t offset : {0, 8, 16, 47, 48, 56, 64}) {  // magic, version, key, sizes
    SCOPED_TRACE(offset);
    Overwrite(path, offset, {0xee});
    const auto packed = TryLoadCached().value();
    ExpectRight(*checkpoint_, *packed);
    EXPECT_EQ(packed->times().cache_bytes, 0);
    EXPECT_TRUE(tiny_.disk.ReadText(path).value() == whole);
  }
  // A change of any header or size is another key, so another file.
  tiny_.Remove("image_start");
  tiny_.tensors.push_back(
      {"image_start", "BF16", {128}, std::vector<uint8_t>(256), checkpoint_->file_names().back()});
  tiny_.Write();
  const auto packed = TryLoadCached().value();
  EXPECT_EQ(packed->times().cache_bytes, 0);
  EXPECT_EQ(CacheFiles().size(), 2u);
}

TEST_F(PackedWeightsTest, UnscannedPiecesDoNotPassForScannedOnes) {
  tiny_.At(kWqA).bytes[5] = 0x7f;
  tiny_.Write();
  ASSERT_TRUE(TryLoadCached(false).ok());
  EXPECT_EQ(TryLoadCached(false).value()->times().source_bytes, 0);
  EXPECT_HAS(MessageOf(TryLoadCached(true).status()), "an FP8 NaN code");
}

// Whatever order of starts made the cache whole: tensors outside of it are looked at once.
class DamagedNorm : public PackedWeightsTest {
 protected:
  DamagedNorm() {
    std::vector<uint8_t>& bytes = tiny_.At("norm.weight").bytes;
    bytes[0] = 0xc0;
    bytes[1] = 0x7f;
    tiny_.Write();
  }
  void ExpectRefused() { EXPECT_HAS(MessageOf(TryLoadCached(true).status()), "norm.weight"); }
};

TEST_F(DamagedNorm, IsFoundAfterARunWithoutScanFinishedTheCache) {
  ExpectRefused();  // all pieces are scanned, and in the journal
  EXPECT_HAS(CachePath(), ".partial");
  ASSERT_TRUE(TryLoadCached(false).ok());
  EXPECT_EQ(CachePath().find(".partial"), std::string::npos);
  ExpectRefused();
  ExpectRefused();
}

TEST_F(DamagedNorm, IsFoundInACacheMadeWithoutScan) {
  ASSERT_TRUE(TryLoadCached(false).ok());
  ExpectRefused();  // all pieces are scanned, in place
  ExpectRefused();
}

// What is found to be good is not looked at again, whoever gave the file its name.
TEST_F(PackedWeightsTest, TensorsOutsideOfTheCacheAreScannedOnce) {
  const std::string shard = StrCat("model/", OpenUnscanned(tiny_.disk)->file_names().back());
  tiny_.disk.FailReadsAt(shard, std::ssize(tiny_.disk.ReadText(shard).value()) - 1);
  ASSERT_FALSE(TryLoadCached(true).ok());
  tiny_.disk.FailReadsAt(shard, -1);
  ASSERT_TRUE(TryLoadCached(false).ok());
  const auto second = TryLoadCached(true).value();
  EXPECT_TRUE(second->scan().done);
  EXPECT_GT(second->times().source_bytes, 0);
  const auto third = TryLoadCached(true).value();
  EXPECT_FALSE(third->scan().done);
  EXPECT_EQ(third->times().source_bytes, 0);
}

// It is whole without the note: nothing that another process does to the file stops a start.
TEST_F(PackedWeightsTest, AScanThatCannotBeNotedIsNoError) {
  ASSERT_TRUE(TryLoadCached(true).ok());
  const int64_t records_end =
      kPackedAlign + 16 * std::ssize(PackedLayout(checkpoint_->weights()).Cut(int64_t{1} << 20));
  Overwrite(CachePath(), records_end, std::vector<uint8_t>(16));
  const auto other = tiny_.disk.OpenUpdate(CachePath()).value();
  const auto packed = TryLoad({.cache_directory = kCache, .keep_experts = false});
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_TRUE((*packed)->scan().done);
  EXPECT_TRUE((*packed)->image_file().has_value());
}

TEST_F(PackedWeightsTest, AHeaderThatGrewSinceItWasReadIsDamage) {
  checkpoint_ = OpenUnscanned(tiny_.disk);
  const std::string name = checkpoint_->file_names().front();
  Overwrite("model/" + name, 0, std::vector<uint8_t>(8, 0xff));
  const Status status =
      PackedWeights::Load(*checkpoint_, {.cache_directory = kCache, .disk = &tiny_.disk}).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_HAS(MessageOf(status), name + ": the header length says 18446744073709551615 bytes");
}

TEST_F(PackedWeightsTest, TroubleWithTheCacheIsNoTroubleWithTheWeights) {
  // No room for it: what was begun is given back.
  const int64_t used = tiny_.disk.used_bytes();
  for (const int64_t room : {0, 5000, 100'000}) {
    tiny_.disk.set_capacity_bytes(used + room);
    const auto packed = TryLoadCached();
    ASSERT_TRUE(packed.ok()) << packed.status();
    ExpectRight(*checkpoint_, **packed);
    EXPECT_FALSE((*packed)->image_file().has_value());
    EXPECT_EQ(tiny_.disk.used_bytes(), used);
    EXPECT_TRUE(CacheFiles().empty());
  }
  EXPECT_HAS(MessageOf(TryLoad({.cache_directory = kCache, .keep_experts = false}).status()),
             "weights cache");
  tiny_.disk.set_capacity_bytes(int64_t{1} << 40);
  // A file where the directory should be.
  const auto packed = TryLoad({.cache_directory = "model/config.json"});
  ASSERT_TRUE(packed.ok()) << packed.status();
  ExpectRight(*checkpoint_, **packed);
}

TEST_F(PackedWeightsTest, TwoWritersDoNotMeet) {
  ASSERT_TRUE(TryLoadCached().ok());
  const std::string path = CachePath();
  ASSERT_TRUE(tiny_.disk.Remove(path).ok());
  {
    const auto other = tiny_.disk.OpenUpdate(path + ".partial").value();
    const auto packed = TryLoadCached();
    ASSERT_TRUE(packed.ok()) << packed.status();
    ExpectRight(*checkpoint_, **packed);
    EXPECT_EQ(other->size(), 0);  // nobody wrote into it
    EXPECT_EQ(MessageOf(TryLoad({.cache_directory = kCache, .keep_experts = false}).status()),
              StrCat("weights cache: ", path,
                     ".partial: another process is writing it; wait until it has finished or give "
                     "another --weights-cache"));
  }
  EXPECT_TRUE(TryLoadCached().value()->image_file().has_value());
}

// Another process finishes the cache between this one's looking for it and its locking, and a third
// one tidies up as well.
class RacingDisk : public SimulatedDisk {
 public:
  StatusOr<std::unique_ptr<UpdatableFile>> OpenUpdate(const std::string& path) override {
    CHECK(WriteText(path.substr(0, path.find(".partial")), finished).ok());
    return SimulatedDisk::OpenUpdate(path);
  }
  Status Remove(const std::string& path) override {
    was_held = SimulatedDisk::OpenUpdate(path).status().code() == StatusCode::kUnavailable;
    CHECK(SimulatedDisk::Remove(path).ok());
    return SimulatedDisk::Remove(path);
  }
  std::string finished;
  bool was_held = false;
};

TEST_F(PackedWeightsTest, ACacheThatAnotherHasJustFinishedIsTaken) {
  ASSERT_TRUE(TryLoadCached().ok());
  RacingDisk disk;
  disk.finished = tiny_.disk.ReadText(CachePath()).value();
  const auto packed = PackedWeights::Load(
      *checkpoint_, {.cache_directory = kCache, .disk = &disk, .keep_experts = false});
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ((*packed)->times().source_bytes, 0);
  EXPECT_TRUE(disk.was_held);  // nobody else can have begun to write it
  EXPECT_EQ(disk.List(kCache).value(), CacheFiles());
}

// All threads find out at about the same time that nothing can be written.
TEST_F(PackedWeightsTest, DamageInAFileThatAnotherHoldsStays) {
  ASSERT_TRUE(TryLoadCached().ok());
  const std::string path = CachePath();
  const auto other = tiny_.disk.OpenUpdate(path).value();
  const int64_t half = other->size() / 2;
  tiny_.disk.Truncate(path, half);
  ThreadPool pool(3);
  const auto packed = TryLoad({.pool = &pool, .cache_directory = kCache});
  ASSERT_TRUE(packed.ok()) << packed.status();
  ExpectRight(*checkpoint_, **packed);
  EXPECT_FALSE((*packed)->image_file().has_value());
  EXPECT_EQ(other->size(), half);
}

// The real disk: direct reads, locks, mapped memory.
TEST_F(PackedWeightsTest, FilesOfTheMachine) {
  std::string folder = (std::filesystem::temp_directory_path() / "packed_test-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::vector<std::string> names = tiny_.disk.List("model").value();
  for (const std::string& name : names) {
    const std::string text = tiny_.disk.ReadText("model/" + name).value();
    ASSERT_TRUE(RealDisk().WriteText(StrCat(folder, "/", name), text).ok());
  }
  const auto checkpoint = OpenUnscanned(RealDisk(), folder);
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    const auto packed = PackedWeights::Load(
        *checkpoint, {.pool = &pool, .cache_directory = folder + "/c", .disk = &RealDisk()});
    ASSERT_TRUE(packed.ok()) << packed.status();
    ExpectRight(*checkpoint, **packed);
    EXPECT_EQ((*packed)->times().cache_bytes > 0, round > 0);
  }
  // From the system's cache, and from the disk.
  for (int round = 0; round < 2; ++round) {
    const auto packed = PackedWeights::Load(*checkpoint, {.pool = &pool, .disk = &RealDisk()});
    ASSERT_TRUE(packed.ok()) << packed.status();
    ExpectRight(*checkpoint, **packed);
    const auto fresh = OpenUnscanned(RealDisk(), folder);  // has nothing mapped in
    for (const std::string& name : names) DropFromSystemCache(StrCat(folder, "/", name));
    const auto again = PackedWeights::Load(*fresh, {.pool = &pool, .disk = &RealDisk()});
    ASSERT_TRUE(again.ok()) << again.status();
    ExpectRight(*fresh, **again);
  }
  std::filesystem::remove_all(folder);
}

TEST(PackedLayout, ExpertsAreRunsOfPagesAndPiecesCoverEverything) {
  TinyCheckpoint tiny;
  tiny.Write();
  const auto checkpoint = OpenUnscanned(tiny.disk);
  const PackedLayout layout(checkpoint->weights());
  const ModelConfig& config = checkpoint->config();
  EXPECT_EQ(layout.num_blocks(), config.num_hidden_layers + config.num_nextn_predict_layers);
  int64_t end = 0;
  for (const PackedRange& range : layout.entries()) {
    EXPECT_EQ(range.offset % kPackedAlign, 0);
    EXPECT_GE(range.offset, end);
    end = range.end();
  }
  EXPECT_GE(layout.image_bytes(), end);
  int64_t expert_end = layout.routed_experts_begin();
  for (int32_t block = 0; block < layout.num_blocks(); ++block) {
    const BlockWeights& weights = BlockOf(checkpoint->weights(), block);
    for (int32_t e = 0; e < std::ssize(weights.experts); ++e) {
      const PackedRange range = layout.Expert(block, e);
      EXPECT_EQ(range.offset, expert_end);  // one after the other
      EXPECT_EQ(range.bytes % kPackedAlign, 0);
      const auto parts = layout.ExpertParts(block, e);
      EXPECT_EQ(parts[0].offset, range.offset);
      EXPECT_LE(parts[2].end(), range.end());
      expert_end = range.end();
    }
  }
  EXPECT_EQ(expert_end, layout.image_bytes());

  std::vector<int64_t> covered(layout.entries().size());
  for (const PackedPiece& piece : layout.Cut(1)) {  // as small as they get
    const PackedRange& entry = layout.entries()[static_cast<size_t>(piece.entry)];
    int64_t& done = covered[static_cast<size_t>(piece.entry)];
    EXPECT_EQ(piece.range.offset, entry.offset + done);
    EXPECT_EQ(piece.range.offset % kPackedAlign, 0);
    EXPECT_EQ(piece.first_panel % 2, 0);
    done += piece.range.bytes;
  }
  for (size_t i = 0; i < covered.size(); ++i) EXPECT_EQ(covered[i], layout.entries()[i].bytes);
}

TEST(LoadPlan, EveryByteIsReadOnceInTheOrderOfTheFiles) {
  TinyCheckpoint tiny;
  tiny.Write();
  const auto checkpoint = OpenUnscanned(tiny.disk);
  std::vector<size_t> all(checkpoint->items().size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::vector<LoadGroup> groups = PlanLoad(checkpoint->items(), {}, {}, {}, all);
  std::map<const ReadableFile*, int64_t> ends;
  int64_t bytes = 0;
  for (const LoadGroup& group : groups) {
    int64_t buffer_end = 0;
    for (const LoadRead& read : group.reads) {
      EXPECT_EQ(read.at % kDirectAlign, read.offset % kDirectAlign);
      EXPECT_GE(read.at / kDirectAlign * kDirectAlign, buffer_end);
      buffer_end = read.at + read.bytes;
      EXPECT_GE(read.offset, ends[read.source]);
      ends[read.source] = read.offset + read.bytes;
    }
    EXPECT_LE(buffer_end, group.buffer_bytes);
    for (const LoadPiece& piece : group.pieces) bytes += piece.codes.end - piece.codes.begin;
  }
  EXPECT_EQ(bytes, checkpoint->census().total.num_bytes);
}

}  // namespace
}  // namespace deepinfer
