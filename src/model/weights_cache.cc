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
constexpr uint32_t kVersion = 2;
struct HeaderFields {  // the first page, as stored; the rest of it is zeros
  char magic[8] = {'D', 'I', 'P', 'A', 'C', 'K', 'E', 'D'};
  uint64_t version = kVersion;
  uint8_t key[32] = {};
  int64_t image_offset = 0, image_bytes = 0, num_pieces = 0;
};
static_assert(sizeof(HeaderFields) == 72);
constexpr int64_t kRecordBytes = 16;
constexpr int64_t kMaxHeaderBytes = int64_t{100} << 20;  // of a safetensors file

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
  if (length > uint64_t{kMaxHeaderBytes}) {  // it was less when the file was opened
    return DataLoss(file.name, ": the header length says ", length, " bytes, the format allows ",
                    kMaxHeaderBytes, "; the file has changed since it was opened, start again");
  }
  std::vector<uint8_t> header(length);
  DI_RETURN_IF_ERROR(file.source->ReadAt(8, header));
  sha->Update({reinterpret_cast<const uint8_t*>(file.name.c_str()), file.name.size() + 1});
  for (const int64_t number : {size, time, static_cast<int64_t>(length)}) {
    sha->Update(BytesOf(number));
  }
  sha->Update(header);
  return OkStatus();
}

StatusOr<std::unique_ptr<UpdatableFile>> OpenForWriting(Disk& disk, const std::string& path) {
  StatusOr<std::unique_ptr<UpdatableFile>> file = disk.OpenUpdate(path);
  if (file.status().code() != StatusCode::kUnavailable) return file;
  return MakeStatus(StatusCode::kUnavailable,
                    StrCat(path,
                           ": another process is writing it; wait until it has finished or "
                           "give another --weights-cache"));
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
      image_offset_(RoundUp(kPackedAlign + (std::ssize(pieces) + 1) * kRecordBytes)),
      image_bytes_(pieces.empty() ? 0 : RoundUp(pieces.back().range.end())),
      records_(pieces.size() + 1),
      states_(pieces.size() + 1, kMissing) {}

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
  return path_ == final_path_ && std::all_of(states_.begin(), states_.end() - 1,
                                             [&](State state) { return state >= wanted_; });
}

Status WeightsCache::OpenPartial() {
  const std::string partial = final_path_ + ".partial";
  DI_ASSIGN_OR_RETURN(writer_, OpenForWriting(disk_, partial));
  if (OpenFinal().ok()) {         // another process has just finished it
    (void)disk_.Remove(partial);  // while nobody else can hold it
    writer_.reset();
    return OkStatus();
  }
  path_ = partial;
  DI_ASSIGN_OR_RETURN(reader_, disk_.OpenRead(path_));
  const Status status = ReadRecords() ? writer_->Reserve(file_bytes()) : Begin();
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
      if (IsInFile(i) && records_[i].seal == Seal(i, records_[i], state)) states_[i] = state;
    }
  }
  plain_was_scanned_ = states_.back() == kScanned;
  return true;
}

// Whether the file has all pages of the piece: it may have been cut short behind its records.
bool WeightsCache::IsInFile(size_t piece) const {
  return piece == pieces_.size() ||
         image_offset_ + RoundUp(pieces_[piece].range.end()) <= reader_->size();
}

// An empty file of the full size. The header comes last: it says that the records are.
Status WeightsCache::Begin() {
  DI_RETURN_IF_ERROR(writer_->Reserve(file_bytes()));
  const std::vector<uint8_t> records(static_cast<size_t>(image_offset_ - kPackedAlign));
  DI_RETURN_IF_ERROR(writer_->WriteAt(kPackedAlign, records));
  DI_RETURN_IF_ERROR(writer_->WriteAt(0, Header()));
  DI_ASSIGN_OR_RETURN(reader_, disk_.OpenRead(path_));  // sees the new size
  return OkStatus();
}

uint32_t WeightsCache::Seal(size_t index, const Record& record, State state) {
  const uint64_t facts[] = {index, record.checksum, record.num_unusual, state};
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
  DI_ASSIGN_OR_RETURN(writer_, OpenForWriting(disk_, path_));
  return writer_->Reserve(file_bytes());  // it may have been cut short
}

Status WeightsCache::WritePiece(int32_t piece, std::span<const uint8_t> bytes,
                                uint32_t num_unusual) {
  DI_RETURN_IF_ERROR(OpenWriter());
  const auto index = static_cast<size_t>(piece);
  DI_RETURN_IF_ERROR(writer_->WriteAt(image_offset_ + pieces_[index].range.offset, bytes));
  return WriteRecord(index, {.checksum = Hash64(bytes), .num_unusual = num_unusual});
}

Status WeightsCache::WriteRecord(size_t index, Record record) {
  record.seal = Seal(index, record, wanted_);
  const int64_t at = kPackedAlign + static_cast<int64_t>(index) * kRecordBytes;
  DI_RETURN_IF_ERROR(writer_->WriteAt(at, BytesOf(record)));
  records_[index] = record;
  states_[index] = wanted_;
  return OkStatus();
}

Status WeightsCache::NotePlainScanned() {
  CHECK(wanted_ == kScanned);
  DI_RETURN_IF_ERROR(OpenWriter());
  return WriteRecord(pieces_.size(), {});
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

Status WeightsCache::Finish(bool plain_scanned) {
  if (given_up_) return OkStatus();
  if (const Status noted = plain_scanned ? NotePlainScanned() : OkStatus(); !noted.ok()) {
    LogWarning("weights cache: ", MessageOf(noted), "; the next start scans some weights again");
  }
  if (writer_ == nullptr) return OkStatus();
  DI_RETURN_IF_ERROR(writer_->Sync());
  if (path_ == final_path_) return OkStatus();
  DI_RETURN_IF_ERROR(disk_.Rename(path_, final_path_));
  path_ = final_path_;
  return OkStatus();
}

}  // namespace deepinfer
