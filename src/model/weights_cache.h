// model/weights_cache.h: the packed image of a checkpoint, kept in a file (--weights-cache DIR).
//
// One file a checkpoint, named by a key over everything that decides about its bytes. Layout,
// little endian: a header page; a record of 16 bytes for each piece of the image (checksum, number
// of unusual scales, seal) and one that says that the tensors outside of the image were scanned;
// from the next multiple of kPackedAlign on, the image (model/packed_layout.h). While it is being
// written it is called NAME.partial, and the records are its journal: a piece counts once its
// record is there and its checksum is right, so a killed run goes on where it was. Damage costs the
// damaged pieces only: they are taken from the checkpoint and written again. A cache may be deleted
// at any time. Threads: Read and Write from any, for different pieces.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/sha256.h"
#include "base/status.h"
#include "model/packed_layout.h"
#include "model/safetensors.h"

namespace deepinfer {

// Over the version of the format, the layout, and name, size, time of change and header of every
// file of the checkpoint. Errors: as ReadAt.
StatusOr<Sha256Digest> WeightsCacheKey(const TensorFiles& files, const PackedLayout& layout);

// Some bytes of the image and their Hash64.
struct CheckedRange {
  PackedRange range;
  uint64_t checksum = 0;
};

// Where an image lies for whoever maps it or reads parts of it.
struct ImageFile {
  std::string path;
  int64_t image_offset = 0;          // of the image in the file, a multiple of kPackedAlign
  std::vector<CheckedRange> pieces;  // all of it, ascending
};

class WeightsCache {
 public:
  // Opens the cache of `key` in `directory`, or begins one there. `pieces` are the image's and
  // outlive the cache; so does `disk`. Pieces that were never scanned for damaged weights count
  // only if `scanned` is false. Errors: kUnavailable while another process writes it; as Disk for a
  // directory that cannot be written and a full disk. Then nothing of it is left behind.
  static StatusOr<std::unique_ptr<WeightsCache>> Open(Disk& disk, const std::string& directory,
                                                      const Sha256Digest& key,
                                                      const std::vector<PackedPiece>& pieces,
                                                      bool scanned);
  ~WeightsCache();

  // Every piece was there when it was opened, under the final name.
  bool was_complete() const { return was_complete_; }
  // A run before this one looked at all tensors that are not in the image and found no damage.
  bool plain_was_scanned() const { return plain_was_scanned_; }
  bool is_complete() const;  // now
  bool Has(int32_t piece) const { return states_[static_cast<size_t>(piece)] >= wanted_; }
  // Reads a part of the image; multiples of kPackedAlign. Errors: as ReadDirect.
  Status Read(const PackedRange& range, std::span<uint8_t> out) const;
  // Whether these bytes, read from it, are piece `piece`; if not, Has() is false from now on.
  // Requires: Has(piece).
  bool Check(int32_t piece, std::span<const uint8_t> bytes);
  void Forget(int32_t piece);  // it could not be read: Has() is false from now on
  uint32_t NumUnusual(int32_t piece) const {
    return records_[static_cast<size_t>(piece)].num_unusual;
  }
  // Adds a piece, of its exact bytes. After the first failure the cache is given up: what is
  // incomplete is removed and later calls do nothing.
  // Errors: as Disk, once.
  Status Write(int32_t piece, std::span<const uint8_t> bytes, uint32_t num_unusual);
  // After the last Write: gives the file its final name. Does nothing if it was complete or is
  // given up. plain_scanned: this run looked at all tensors that are not in the image and found no
  // damage; that this cannot be noted down is a warning. Errors: as Disk.
  Status Finish(bool plain_scanned);

  ImageFile image() const;

 private:
  enum State : uint8_t { kMissing, kPacked, kScanned };
  struct Record {           // as stored
    uint64_t checksum = 0;  // of the bytes
    uint32_t num_unusual = 0;
    uint32_t seal = 0;  // of the record and the state: says whether, and how, the piece is there
  };
  WeightsCache(Disk& disk, std::string final_path, const Sha256Digest& key,
               const std::vector<PackedPiece>& pieces, bool scanned);
  Status OpenFinal();
  Status OpenPartial();
  std::vector<uint8_t> Header() const;
  bool ReadRecords();
  Status Begin();
  Status OpenWriter();
  int64_t file_bytes() const { return image_offset_ + image_bytes_; }
  bool IsInFile(size_t piece) const;
  Status WritePiece(int32_t piece, std::span<const uint8_t> bytes, uint32_t num_unusual);
  Status WriteRecord(size_t index, Record record);
  Status NotePlainScanned();
  static uint32_t Seal(size_t index, const Record& record, State state);
  bool GiveUp();

  Disk& disk_;
  const std::string final_path_;
  const Sha256Digest key_;
  const std::vector<PackedPiece>& pieces_;
  const State wanted_;  // the least that counts
  int64_t image_offset_ = 0, image_bytes_ = 0;

  std::string path_;  // of the file that is read and written now
  bool was_complete_ = false, plain_was_scanned_ = false;
  std::vector<Record> records_;  // by piece, and that of the tensors outside of the image
  std::vector<State> states_;    // the same
  std::unique_ptr<ReadableFile> reader_;
  std::mutex mutex_;  // of writer_
  std::unique_ptr<UpdatableFile> writer_;
  std::atomic<bool> given_up_{false};
};

}  // namespace deepinfer
