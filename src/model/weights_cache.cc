#include "model/weights_cache.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash64.h"
#include "base/log.h"
#include "base/strings.h"

namespace deepinfer {
namespace {

// Of the file and of the order of weights in panels: raise it when either changes.
constexpr uint32_t kVersion = 1;
struct HeaderFields {  // the first page, as stored; the rest of it is zeros
  char magic[8] = {'D', 'I', 'P', 'A', 'C', 'K', 'E', 'D'};
  uint64_t version = kVersion;
  uint8_t key[32] = {};
  int64_t image_offset = 0, image_bytes = 0, num_pieces = 0;
};
static_assert(sizeof(HeaderFields) == 72);
constexpr int64_t kRecordBytes = 16;
constexpr int64_t kMaxHeaderBytes = int64_t{100} << 20;  // of a safetensors file
int64_t RoundUp(int64_t bytes) { return (bytes + kPackedAlign - 1) / kPackedAlign * kPackedAlign; }

template <typename T>
std::span<const uint8_t> BytesOf(const T& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}

Status HashFile(const TensorFile& file, Sha256* sha) {
  const int64_t size = file.source->size(), time = file.source->modified_ns();
  uint64_t length = 0;
  std::array<uint8_t, 8> raw;
  DI_RETURN_IF_ERROR(file.source->ReadAt(0, raw));
  std::memcpy(&length, raw.data(), sizeof length);
  CHECK_LE(length, uint64_t{kMaxHeaderBytes});  // it was read before
  std::vector<uint8_t> header(length);
  DI_RETURN_IF_ERROR(file.source->ReadAt(8, header));
  sha->Update({reinterpret_cast<const uint8_t*>(file.name.c_str()), file.name.size() + 1});
  for (const int64_t number : {size, time, static_cast<int64_t>(length)}) {
    sha->Update(BytesOf(number));
  }
  sha->Update(header);
  return OkStatus();
}

}  // namespace

StatusOr<Sha256Digest> WeightsCacheKey(const TensorFiles& files, const PackedLayout& layout) {
  Sha256 sha;
  sha.Update(BytesOf(kVersion));
  for (const PackedRange& range : layout.entries()) sha.Update(BytesOf(range));
  for (const TensorFile& file : files.files) DI_RETURN_IF_ERROR(HashFile(file, &sha));
  return sha.Finish();
}

WeightsCache::WeightsCache(Disk& disk, std::string final_path, const Sha256Digest& key,
                           const std::vector<PackedPiece>& pieces, bool scanned)
    : disk_(disk),
      final_path_(std::move(final_path)),
      key_(key),
      pieces_(pieces),
      wanted_(scanned ? kScanned : kPacked),
      image_offset_(RoundUp(kPackedAlign + std::ssize(pieces) * kRecordBytes)),
      image_bytes_(pieces.empty() ? 0 : RoundUp(pieces.back().range.end())),
      records_(pieces.size()),
      states_(pieces.size(), kMissing) {}

WeightsCache::~WeightsCache() = default;

StatusOr<std::unique_ptr<WeightsCache>> WeightsCache::Open(Disk& disk, const std::string& directory,
                                                           const Sha256Digest& key,
                                                           const std::vector<PackedPiece>& pieces,
                                                           bool scanned) {
  static_assert(sizeof(Record) == kRecordBytes);
  DI_RETURN_IF_ERROR(disk.CreateDirectories(directory));
  const std::string name = ToHex(std::span(key).first(16));
  std::unique_ptr<WeightsCache> cache(
      new WeightsCache(disk, StrCat(directory, "/", name, ".packed"), key, pieces, scanned));
  const Status status = cache->OpenFinal();
  if (status.ok()) return cache;
  if (status.code() != StatusCode::kNotFound) {
    LogWarning("weights cache: ", MessageOf(status), "; made anew");
  }
  DI_RETURN_IF_ERROR(cache->OpenPartial());
  return cache;
}

// Errors: any, if there is no file or it is not one of this key.
Status WeightsCache::OpenFinal() {
  if (!disk_.IsFile(final_path_)) return NotFound(final_path_, ": no such file");
  DI_ASSIGN_OR_RETURN(reader_, disk_.OpenRead(final_path_));
  if (!ReadRecords()) {
    return DataLoss(final_path_, ": not a weights cache of this checkpoint and this version");
  }
  path_ = final_path_;
  was_complete_ = is_complete();
  return OkStatus();
}

bool WeightsCache::is_complete() const {
  return path_ == final_path_ &&
         std::all_of(states_.begin(), states_.end(), [&](State state) { return state >= wanted_; });
}

Status WeightsCache::OpenPartial() {
  const std::string partial = final_path_ + ".partial";
  DI_ASSIGN_OR_RETURN(writer_, disk_.OpenUpdate(partial));
  if (OpenFinal().ok()) {  // another process has just finished it
    writer_.reset();
    return disk_.Remove(partial);
  }
  path_ = partial;
  DI_ASSIGN_OR_RETURN(reader_, disk_.OpenRead(path_));
  if (ReadRecords()) return OkStatus();
  const Status status = Begin();
  if (!status.ok()) GiveUp();
  return status;
}

std::vector<uint8_t> WeightsCache::Header() const {
  HeaderFields fields = {.image_offset = image_offset_,
                         .image_bytes = image_bytes_,
                         .num_pieces = std::ssize(pieces_)};
  std::copy(key_.begin(), key_.end(), fields.key);
  std::vector<uint8_t> page(static_cast<size_t>(kPackedAlign));
  std::memcpy(page.data(), &fields, sizeof fields);
  return page;
}

// Whether the file is one of this key. Which of its records are right, their seals say.
bool WeightsCache::ReadRecords() {
  const int64_t records_bytes = std::ssize(records_) * kRecordBytes;
  std::vector<uint8_t> page(static_cast<size_t>(kPackedAlign));
  if (reader_->size() < kPackedAlign + records_bytes || !reader_->ReadAt(0, page).ok() ||
      page != Header()) {
    return false;
  }
  std::vector<Record> records(records_.size());
  const Status read = reader_->ReadAt(kPackedAlign, {reinterpret_cast<uint8_t*>(records.data()),
                                                     static_cast<size_t>(records_bytes)});
  if (!read.ok()) return false;
  records_ = std::move(records);
  for (size_t i = 0; i < records_.size(); ++i) {
    for (const State state : {kPacked, kScanned}) {
      if (records_[i].seal == Seal(static_cast<int32_t>(i), records_[i], state)) states_[i] = state;
    }
  }
  return true;
}

// An empty file of the full size. The header comes last: it says that the records are.
Status WeightsCache::Begin() {
  DI_RETURN_IF_ERROR(writer_->Reserve(image_offset_ + image_bytes_));
  const std::vector<uint8_t> records(static_cast<size_t>(image_offset_ - kPackedAlign));
  DI_RETURN_IF_ERROR(writer_->WriteAt(kPackedAlign, records));
  DI_RETURN_IF_ERROR(writer_->WriteAt(0, Header()));
  DI_ASSIGN_OR_RETURN(reader_, disk_.OpenRead(path_));  // sees the new size
  return OkStatus();
}

uint32_t WeightsCache::Seal(int32_t piece, const Record& record, State state) {
  const uint64_t facts[] = {static_cast<uint64_t>(piece), record.checksum, record.num_unusual,
                            state};
  return static_cast<uint32_t>(Hash64(BytesOf(facts)));
}

Status WeightsCache::Read(const PackedRange& range, std::span<uint8_t> out) const {
  CHECK_EQ(std::ssize(out), range.bytes);
  return reader_->ReadDirect(image_offset_ + range.offset, out);
}

bool WeightsCache::Check(int32_t piece, std::span<const uint8_t> bytes) {
  if (Hash64(bytes) == records_[static_cast<size_t>(piece)].checksum) return true;
  Forget(piece);
  return false;
}

ImageFile WeightsCache::image() const {
  ImageFile image = {path_, image_offset_, {}};
  for (size_t i = 0; i < pieces_.size(); ++i) {
    image.pieces.push_back({pieces_[i].range, records_[i].checksum});
  }
  return image;
}

void WeightsCache::Forget(int32_t piece) { states_[static_cast<size_t>(piece)] = kMissing; }

Status WeightsCache::OpenWriter() {
  std::lock_guard lock(mutex_);
  if (writer_ != nullptr) return OkStatus();
  DI_ASSIGN_OR_RETURN(writer_, disk_.OpenUpdate(path_));
  return writer_->Reserve(image_offset_ + image_bytes_);  // it may have been cut short
}

Status WeightsCache::WritePiece(int32_t piece, std::span<const uint8_t> bytes,
                                uint32_t num_unusual) {
  DI_RETURN_IF_ERROR(OpenWriter());
  Record record{.checksum = Hash64(bytes), .num_unusual = num_unusual};
  record.seal = Seal(piece, record, wanted_);
  const PackedRange& range = pieces_[static_cast<size_t>(piece)].range;
  DI_RETURN_IF_ERROR(writer_->WriteAt(image_offset_ + range.offset, bytes));
  DI_RETURN_IF_ERROR(writer_->WriteAt(kPackedAlign + piece * kRecordBytes, BytesOf(record)));
  records_[static_cast<size_t>(piece)] = record;
  states_[static_cast<size_t>(piece)] = wanted_;
  return OkStatus();
}

Status WeightsCache::Write(int32_t piece, std::span<const uint8_t> bytes, uint32_t num_unusual) {
  if (given_up_) return OkStatus();
  const Status status = WritePiece(piece, bytes, num_unusual);
  return status.ok() || !GiveUp() ? OkStatus() : status;
}

// Returns whether this call was the first.
bool WeightsCache::GiveUp() {
  if (given_up_.exchange(true)) return false;
  if (path_ != final_path_) (void)disk_.Remove(path_);
  return true;
}

Status WeightsCache::Finish() {
  if (given_up_ || writer_ == nullptr) return OkStatus();
  DI_RETURN_IF_ERROR(writer_->Sync());
  if (path_ == final_path_) return OkStatus();
  DI_RETURN_IF_ERROR(disk_.Rename(path_, final_path_));
  path_ = final_path_;
  return OkStatus();
}

}  // namespace deepinfer
