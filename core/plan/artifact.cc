#include "core/plan/artifact.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/digest/crc32c.h"
#include "core/digest/sha256.h"
#include "core/plan/byte_codec.h"
#include "core/plan/column_names.h"
#include "core/plan/plan_codec.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

// docs/formats.md describes every byte of the format. A change here needs a change there, and a new
// kArtifactFormat.
namespace phimap {
namespace {

constexpr absl::string_view kMagic("PHIMAP\r\n", 8);
constexpr int64_t kHeaderBytes = 32;
constexpr int64_t kTableEntryBytes = 24;
constexpr int64_t kSectionAlignment = 64;
constexpr int64_t kMaxTextBytes = 1 << 16;

// Sections in the order of the file. The first five are in every artifact, the others are optional.
enum Section : uint32_t {
  kProvenance = 1,
  kInput = 2,
  kFeatures = 3,
  kProjection = 4,
  kCertificate = 5,
  kColumnNames = 6,
  kDriftReference = 7,
  kHead = 8,
  kHeadVariance = 9
};
// Names of sections in docs/formats.md.
constexpr std::array<absl::string_view, kHeadVariance> kSectionNames = {
    "provenance",   "input stage",     "feature stage", "projection stage", "certificate",
    "column names", "drift reference", "head",          "head variance"};
// Number of sections that every artifact has, and number that the longest table holds.
constexpr size_t kFewestSections = 5;
constexpr size_t kMostSections = 9;

// Returns the last kind of section that an artifact of a format may have.
// REQUIRES: the format is known.
uint32_t LastKindOf(uint32_t format) {
  constexpr std::array kLast = {kCertificate, kColumnNames, kDriftReference, kHeadVariance};
  static_assert(kLast.size() == kArtifactFormat);
  return kLast[format - kFormatWithoutNames];
}

// Returns the oldest format of artifacts whose last section is of this kind.
uint32_t OldestFormatOf(uint32_t last_kind) {
  uint32_t format = kFormatWithoutNames;
  while (LastKindOf(format) < last_kind) ++format;
  return format;
}

// Returns the end of the section table.
constexpr int64_t TableEnd(size_t sections) {
  return kHeaderBytes + kTableEntryBytes * static_cast<int64_t>(sections);
}
static_assert(TableEnd(kMostSections) == kArtifactHeadBytes);

constexpr int64_t Aligned(int64_t offset) {
  return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}
// Every artifact is longer than the longest head, so kArtifactHeadBytes can always be read: the
// second section begins at an offset that is at least one alignment after the first.
static_assert(Aligned(TableEnd(kFewestSections)) + kSectionAlignment >= kArtifactHeadBytes);

struct TableEntry {
  uint32_t kind = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t crc = 0;
};

std::string EncodeProvenance(const Provenance& provenance) {
  std::string out;
  ByteWriter writer(out);
  writer.Text(provenance.spec_text);
  writer.Text(provenance.kernel_text);
  writer.Number<uint8_t>(provenance.standardize ? 1 : 0);
  writer.Number<uint64_t>(provenance.seed);
  return out;
}

absl::StatusOr<Provenance> DecodeProvenance(ByteReader reader) {
  Provenance provenance;
  provenance.spec_text = reader.Text(kMaxTextBytes);
  provenance.kernel_text = reader.Text(kMaxTextBytes);
  const uint8_t standardize = reader.Number<uint8_t>();
  reader.CheckRange("standardize", standardize, 0, 1);
  provenance.standardize = standardize == 1;
  provenance.seed = reader.Number<uint64_t>();
  PHIMAP_RETURN_IF_ERROR(reader.Finish());
  return provenance;
}

struct Header {
  uint32_t format = 0;
  // Number of entries of the table that are used.
  size_t sections = 0;
  uint32_t arithmetic = 0;
  FloatType serving_type = FloatType::kFloat32;
  std::array<TableEntry, kMostSections> table;
  // End of the last section, and of the artifact.
  int64_t end = 0;

  // Returns the entry of a section. If there is no such section, its size is 0.
  TableEntry Of(Section section) const {
    for (size_t i = 0; i < sections; ++i) {
      if (table[i].kind == section) return table[i];
    }
    return {};
  }
  bool Has(Section section) const { return Of(section).kind == section; }
};

std::string EncodeHeader(const Header& header) {
  std::string head;
  ByteWriter writer(head);
  writer.Numbers(kMagic.data(), kMagic.size());
  writer.Number<uint32_t>(header.format);
  writer.Number<uint32_t>(header.arithmetic);
  writer.Number<uint32_t>(static_cast<uint32_t>(header.serving_type));
  writer.Number<uint32_t>(static_cast<uint32_t>(header.sections));
  writer.Number<uint32_t>(0);  // reserved
  std::string table;
  ByteWriter table_writer(table);
  for (size_t i = 0; i < header.sections; ++i) {
    table_writer.Number<uint32_t>(header.table[i].kind);
    table_writer.Number<uint32_t>(header.table[i].crc);
    table_writer.Number<uint64_t>(static_cast<uint64_t>(header.table[i].offset));
    table_writer.Number<uint64_t>(static_cast<uint64_t>(header.table[i].size));
  }
  // The header's checksum covers all earlier fields of the header, and the table.
  writer.Number<uint32_t>(Crc32c(head + table));
  return head + table;
}

// A section that is written, and its checksum.
struct SectionBytes {
  Section kind;
  absl::string_view bytes;
  uint32_t crc;
};

// Fills in the table of an artifact that consists of these sections, and the oldest format that can
// hold them.
void LayOut(absl::Span<const SectionBytes> sections, Header& header) {
  header.format = OldestFormatOf(sections.back().kind);
  header.sections = sections.size();
  header.end = TableEnd(header.sections);
  for (size_t i = 0; i < sections.size(); ++i) {
    const auto size = static_cast<int64_t>(sections[i].bytes.size());
    header.table[i] = {sections[i].kind, Aligned(header.end), size, sections[i].crc};
    header.end = header.table[i].offset + size;
  }
}

// Emits the bytes of an artifact that was laid out, piece by piece.
void Emit(const Header& header, absl::Span<const SectionBytes> sections,
          absl::FunctionRef<void(absl::string_view)> emit) {
  constexpr char kZeros[kSectionAlignment] = {};
  emit(EncodeHeader(header));
  int64_t end = TableEnd(header.sections);
  for (size_t i = 0; i < sections.size(); ++i) {
    emit(absl::string_view(kZeros, header.table[i].offset - end));
    emit(sections[i].bytes);
    end = header.table[i].offset + header.table[i].size;
  }
}

// Returns the bytes of an artifact. `header` has its arithmetic and serving type.
absl::StatusOr<std::string> Assemble(absl::Span<const SectionBytes> sections, Header header) {
  LayOut(sections, header);
  if (header.end > kMaxArtifactBytes) {
    return MakeError(absl::StatusCode::kResourceExhausted, reason::kArtifactTooLarge, "",
                     absl::StrCat("the artifact takes more than ", kMaxArtifactBytes,
                                  " bytes; use fewer landmarks or dimensions"));
  }
  std::string out;
  out.reserve(header.end);
  Emit(header, sections, [&](absl::string_view piece) { absl::StrAppend(&out, piece); });
  return out;
}

absl::Status CheckHeaderChecksum(absl::string_view bytes, size_t sections, uint32_t stored) {
  const uint32_t actual =
      Crc32c(absl::StrCat(bytes.substr(0, kHeaderBytes - 4),
                          bytes.substr(kHeaderBytes, TableEnd(sections) - kHeaderBytes)));
  if (actual == stored) return absl::OkStatus();
  return DamagedArtifact(kHeaderBytes - 4,
                         absl::StrCat("header checksum: expected ", stored, ", got ", actual));
}

absl::Status Unknown(absl::string_view what, uint32_t got, uint32_t known) {
  return MakeError(absl::StatusCode::kUnimplemented, reason::kFormatUnknown, "",
                   absl::StrCat("the artifact has ", what, " ", got, ", but this build knows only ",
                                what, "s up to ", known, "; a newer phimap wrote the artifact"));
}

// Checks the kind of section i. The first five sections are those of every artifact. After these,
// format 2 has column names, and later formats any optional sections that they know, in rising
// order.
absl::Status CheckKind(const Header& header, size_t i, ByteReader& reader) {
  const uint32_t kind = header.table[i].kind;
  const uint32_t least =
      i < kFewestSections ? static_cast<uint32_t>(i) + 1 : header.table[i - 1].kind + 1;
  const bool exact = i < kFewestSections || header.format == kFormatOfNames;
  const uint32_t last = LastKindOf(header.format);
  if (!exact && kind > last) return Unknown("section", kind, last);
  if (exact ? kind != least : kind < least) {
    reader.Fail(
        absl::StrCat("expected section ", least, exact ? "" : " or a later one", ", got ", kind));
  }
  return reader.status();
}

// Reads the table of header.sections sections, which follow each other without gaps.
absl::Status ReadTable(ByteReader& reader, int64_t size_limit, Header& header) {
  int64_t expected_offset = TableEnd(header.sections);
  for (size_t i = 0; i < header.sections; ++i) {
    header.table[i].kind = reader.Number<uint32_t>();
    header.table[i].crc = reader.Number<uint32_t>();
    header.table[i].offset = static_cast<int64_t>(reader.Number<uint64_t>());
    header.table[i].size = static_cast<int64_t>(reader.Number<uint64_t>());
    PHIMAP_RETURN_IF_ERROR(CheckKind(header, i, reader));
    expected_offset = Aligned(expected_offset);
    reader.CheckRange("section offset", header.table[i].offset, expected_offset, expected_offset);
    reader.CheckRange("section size", header.table[i].size, i < kFewestSections ? 0 : 1,
                      size_limit - expected_offset);
    PHIMAP_RETURN_IF_ERROR(reader.status());
    expected_offset += header.table[i].size;
  }
  // An artifact has one form: the oldest format that can hold it.
  if (header.format != OldestFormatOf(header.table[header.sections - 1].kind)) {
    reader.Fail(
        absl::StrCat("the artifact has format ", header.format, " but no section that needs it"));
  }
  if (header.Has(kHeadVariance) && !header.Has(kHead)) {
    reader.Fail("the artifact has the variance of a head, but no head");
  }
  header.end = expected_offset;
  return reader.status();
}

// Checks that the header has a number of sections that its format may have.
void CheckSectionCount(uint32_t sections, const Header& header, ByteReader& reader) {
  if (header.format > kFormatOfNames) {
    reader.CheckRange("sections", sections, int64_t{kFewestSections} + 1,
                      LastKindOf(header.format));
    return;
  }
  const size_t expected =
      header.format == kFormatWithoutNames ? kFewestSections : kFewestSections + 1;
  if (sections != expected) {
    reader.Fail(absl::StrCat("expected ", expected, " sections, got ", sections));
  }
}

// Checks that zeros follow the table up to the first section, as far as the head shows them.
absl::Status CheckPaddingOfTable(absl::string_view bytes, const Header& header) {
  const int64_t begin = TableEnd(header.sections);
  const int64_t end = std::min(Aligned(begin), kArtifactHeadBytes);
  ByteReader padding(bytes.substr(begin, end - begin), begin);
  padding.AlignTo(end);
  return padding.status();
}

// Decodes header and table of an artifact that begins with `bytes` and is `size_limit` bytes long
// or shorter.
absl::StatusOr<Header> DecodeHeader(absl::string_view bytes, int64_t size_limit) {
  if (bytes.size() < kHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return DamagedArtifact(0, "this is not a phimap artifact (no magic)");
  }
  ByteReader reader(bytes.substr(kMagic.size()), kMagic.size());
  Header header;
  header.format = reader.Number<uint32_t>();
  header.arithmetic = reader.Number<uint32_t>();
  const uint32_t serving_type = reader.Number<uint32_t>();
  const uint32_t sections = reader.Number<uint32_t>();
  const uint32_t reserved = reader.Number<uint32_t>();
  const uint32_t crc = reader.Number<uint32_t>();
  if (header.format < kFormatWithoutNames || header.format > kArtifactFormat)
    return Unknown("format version", header.format, kArtifactFormat);
  CheckSectionCount(sections, header, reader);
  if (reserved != 0) reader.Fail("a reserved field is not zero");
  reader.CheckRange("serving type", serving_type, 1, 2);
  if (static_cast<int64_t>(bytes.size()) < kArtifactHeadBytes)
    reader.Fail("the section table is cut off");
  PHIMAP_RETURN_IF_ERROR(reader.status());
  header.sections = sections;
  PHIMAP_RETURN_IF_ERROR(CheckHeaderChecksum(bytes, header.sections, crc));
  if (header.arithmetic != kArithmetic)
    return Unknown("arithmetic", header.arithmetic, kArithmetic);
  header.serving_type = static_cast<FloatType>(serving_type);
  PHIMAP_RETURN_IF_ERROR(ReadTable(reader, size_limit, header));
  PHIMAP_RETURN_IF_ERROR(CheckPaddingOfTable(bytes, header));
  return header;
}

// Checks that `section`, the bytes of an entry, has the checksum that the table states.
absl::StatusOr<ByteReader> CheckSection(absl::string_view section, const TableEntry& entry) {
  const uint32_t actual = Crc32c(section);
  if (actual != entry.crc) {
    return DamagedArtifact(
        entry.offset, absl::StrCat("section ", entry.kind, " (", kSectionNames[entry.kind - 1],
                                   ") is damaged: its checksum is ", actual, ", not ", entry.crc));
  }
  return ByteReader(section, entry.offset);
}

absl::string_view BytesOf(absl::string_view bytes, const TableEntry& entry) {
  return bytes.substr(entry.offset, entry.size);
}

absl::Status CheckEnd(const Header& header, int64_t size) {
  if (header.end == size) return absl::OkStatus();
  return DamagedArtifact(header.end,
                         absl::StrCat("the artifact has ", size, " bytes, expected ", header.end));
}

absl::StatusOr<std::string> ReadExactly(const ArtifactRange& read, int64_t offset, int64_t bytes) {
  PHIMAP_ASSIGN_OR_RETURN(std::string part, read(offset, bytes));
  if (static_cast<int64_t>(part.size()) == bytes) return part;
  return DamagedArtifact(offset + static_cast<int64_t>(part.size()), "the artifact is cut off");
}

// Checks that there are no names, or one for each column of the plan.
absl::Status CheckNamesOf(const Plan& plan, const std::vector<std::string>& names) {
  const auto count = static_cast<int64_t>(names.size());
  if (count == 0 || count == plan.input_columns()) return CheckColumnNames(names);
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kColumnNamesInvalid, "column_names",
      absl::StrCat("expected no names, or ", CountOf(plan.input_columns(), "name"),
                   ", one for each column; got ", count),
      {{"expected", absl::StrCat(plan.input_columns())}, {"actual", absl::StrCat(count)}});
}

// Returns the sections of the artifact in the order of the file, without the optional ones that it
// does not have.
std::vector<std::pair<Section, std::string>> EncodeSections(const Artifact& artifact) {
  std::vector<std::pair<Section, std::string>> sections = {
      {kProvenance, EncodeProvenance(artifact.provenance)},
      {kInput, EncodeInputStage(artifact.plan.input)},
      {kFeatures, EncodeFeatureStage(artifact.plan)},
      {kProjection, EncodeProjectionStage(artifact.plan)},
      {kCertificate, artifact.certificate}};
  if (const std::vector<std::string>& names = artifact.provenance.column_names; !names.empty()) {
    sections.emplace_back(kColumnNames, EncodeColumnNames(names));
  }
  for (const auto& [kind, bytes] :
       {std::pair{kDriftReference, &artifact.drift_reference}, std::pair{kHead, &artifact.head},
        std::pair{kHeadVariance, &artifact.head_variance}}) {
    if (!bytes->empty()) sections.emplace_back(kind, *bytes);
  }
  return sections;
}

// Returns the sections of an artifact that are not of its head, with the checksums that its table
// states.
std::vector<SectionBytes> FeatureSections(absl::string_view bytes, const Header& header) {
  std::vector<SectionBytes> sections;
  for (size_t i = 0; i < header.sections; ++i) {
    const TableEntry& entry = header.table[i];
    if (entry.kind >= kHead) break;
    sections.push_back({static_cast<Section>(entry.kind), BytesOf(bytes, entry), entry.crc});
  }
  return sections;
}

// Reads the header of an artifact of `size_bytes` bytes.
absl::StatusOr<Header> ReadHeader(int64_t size_bytes, const ArtifactRange& read) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string head, ReadExactly(read, 0, kArtifactHeadBytes));
  PHIMAP_ASSIGN_OR_RETURN(Header header, DecodeHeader(head, size_bytes));
  PHIMAP_RETURN_IF_ERROR(CheckEnd(header, size_bytes));
  return header;
}

// Reads a section, and checks its checksum.
absl::StatusOr<std::string> ReadSection(const ArtifactRange& read, const TableEntry& entry) {
  PHIMAP_ASSIGN_OR_RETURN(std::string section, ReadExactly(read, entry.offset, entry.size));
  PHIMAP_RETURN_IF_ERROR(CheckSection(section, entry).status());
  return section;
}

// Reads a section. Returns "" if the artifact does not have it.
absl::StatusOr<std::string> ReadOptional(Section section, int64_t size_bytes,
                                         const ArtifactRange& read,
                                         const std::function<absl::Status(int64_t bytes)>& charge) {
  PHIMAP_ASSIGN_OR_RETURN(const Header header, ReadHeader(size_bytes, read));
  if (!header.Has(section)) return std::string();
  const TableEntry entry = header.Of(section);
  if (charge) PHIMAP_RETURN_IF_ERROR(charge(entry.size));
  return ReadSection(read, entry);
}

// Decodes the header of an artifact that is in memory as a whole.
absl::StatusOr<Header> DecodeWholeHeader(absl::string_view bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (size > kMaxArtifactBytes) {
    return DamagedArtifact(0, absl::StrCat("the artifact has ", size, " bytes; at most ",
                                           kMaxArtifactBytes, " are allowed"));
  }
  PHIMAP_ASSIGN_OR_RETURN(const Header header, DecodeHeader(bytes, size));
  PHIMAP_RETURN_IF_ERROR(CheckEnd(header, size));
  return header;
}

// Decodes the optional sections, whose checksums are right.
absl::Status DecodeOptionalSections(absl::string_view bytes, const Header& header,
                                    Artifact& artifact) {
  artifact.drift_reference = std::string(BytesOf(bytes, header.Of(kDriftReference)));
  artifact.head = std::string(BytesOf(bytes, header.Of(kHead)));
  artifact.head_variance = std::string(BytesOf(bytes, header.Of(kHeadVariance)));
  if (!header.Has(kColumnNames)) return absl::OkStatus();
  const TableEntry names = header.Of(kColumnNames);
  PHIMAP_ASSIGN_OR_RETURN(artifact.provenance.column_names,
                          DecodeColumnNames(BytesOf(bytes, names), names.offset));
  const absl::Status valid = CheckNamesOf(artifact.plan, artifact.provenance.column_names);
  if (valid.ok()) return valid;
  return DamagedArtifact(names.offset, absl::StrCat("column names: ", valid.message()));
}

}  // namespace

absl::StatusOr<std::string> EncodeArtifact(const Artifact& artifact) {
  PHIMAP_RETURN_IF_ERROR(artifact.plan.Validate());
  PHIMAP_RETURN_IF_ERROR(CheckNamesOf(artifact.plan, artifact.provenance.column_names));
  PHIMAP_CHECK(artifact.head_variance.empty() || !artifact.head.empty());
  const auto encoded = EncodeSections(artifact);
  std::vector<SectionBytes> sections;
  for (const auto& [kind, bytes] : encoded) sections.push_back({kind, bytes, Crc32c(bytes)});
  return Assemble(sections, {.arithmetic = artifact.plan.arithmetic,
                             .serving_type = artifact.plan.serving_type(),
                             .table = {}});
}

absl::StatusOr<std::string> WithHead(absl::string_view bytes, absl::string_view head,
                                     absl::string_view variance) {
  PHIMAP_CHECK(variance.empty() || !head.empty());
  PHIMAP_ASSIGN_OR_RETURN(const Header header, DecodeWholeHeader(bytes));
  std::vector<SectionBytes> sections = FeatureSections(bytes, header);
  if (!head.empty()) sections.push_back({kHead, head, Crc32c(head)});
  if (!variance.empty()) sections.push_back({kHeadVariance, variance, Crc32c(variance)});
  return Assemble(sections, header);
}

absl::StatusOr<std::string> FeaturesDigest(absl::string_view bytes) {
  PHIMAP_ASSIGN_OR_RETURN(Header header, DecodeWholeHeader(bytes));
  const std::vector<SectionBytes> sections = FeatureSections(bytes, header);
  LayOut(sections, header);
  Sha256 hash;
  Emit(header, sections, [&](absl::string_view piece) { hash.Update(piece); });
  return hash.Hex();
}

uint32_t ArtifactFormatOf(absl::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return 0;
  return ByteReader(bytes.substr(kMagic.size()), kMagic.size()).Number<uint32_t>();
}

absl::StatusOr<int64_t> ArtifactSizeInHead(absl::string_view bytes) {
  PHIMAP_ASSIGN_OR_RETURN(const Header header, DecodeHeader(bytes, kMaxArtifactBytes));
  return header.end;
}

absl::StatusOr<ArtifactFacts> ReadArtifactFacts(
    int64_t size_bytes, const ArtifactRange& read,
    const std::function<absl::Status(int64_t bytes)>& charge) {
  PHIMAP_ASSIGN_OR_RETURN(const Header header, ReadHeader(size_bytes, read));
  const TableEntry provenance = header.Of(kProvenance);
  const TableEntry certificate = header.Of(kCertificate);
  const TableEntry names = header.Of(kColumnNames);
  if (charge) PHIMAP_RETURN_IF_ERROR(charge(provenance.size + certificate.size + names.size));
  ArtifactFacts facts;
  PHIMAP_ASSIGN_OR_RETURN(const std::string section, ReadSection(read, provenance));
  PHIMAP_ASSIGN_OR_RETURN(facts.provenance,
                          DecodeProvenance(ByteReader(section, provenance.offset)));
  PHIMAP_ASSIGN_OR_RETURN(facts.certificate, ReadSection(read, certificate));
  facts.has_drift_reference = header.Has(kDriftReference);
  facts.has_head = header.Has(kHead);
  facts.has_head_variance = header.Has(kHeadVariance);
  if (!header.Has(kColumnNames)) return facts;
  PHIMAP_ASSIGN_OR_RETURN(const std::string names_section, ReadSection(read, names));
  PHIMAP_ASSIGN_OR_RETURN(facts.provenance.column_names,
                          DecodeColumnNames(names_section, names.offset));
  return facts;
}

absl::StatusOr<std::string> ReadDriftReference(
    int64_t size_bytes, const ArtifactRange& read,
    const std::function<absl::Status(int64_t bytes)>& charge) {
  return ReadOptional(kDriftReference, size_bytes, read, charge);
}

absl::StatusOr<std::string> ReadHead(int64_t size_bytes, const ArtifactRange& read,
                                     const std::function<absl::Status(int64_t bytes)>& charge) {
  return ReadOptional(kHead, size_bytes, read, charge);
}

absl::StatusOr<std::string> ReadHeadVariance(
    int64_t size_bytes, const ArtifactRange& read,
    const std::function<absl::Status(int64_t bytes)>& charge) {
  return ReadOptional(kHeadVariance, size_bytes, read, charge);
}

absl::StatusOr<Artifact> DecodeArtifact(absl::string_view bytes) {
  PHIMAP_ASSIGN_OR_RETURN(const Header header, DecodeWholeHeader(bytes));
  // All checksums are checked before any section is decoded.
  std::vector<ByteReader> readers;
  int64_t end = TableEnd(header.sections);
  for (size_t i = 0; i < header.sections; ++i) {
    ByteReader padding(bytes.substr(end, header.table[i].offset - end), end);
    padding.AlignTo(kSectionAlignment);
    PHIMAP_RETURN_IF_ERROR(padding.status());
    PHIMAP_ASSIGN_OR_RETURN(ByteReader reader,
                            CheckSection(BytesOf(bytes, header.table[i]), header.table[i]));
    readers.push_back(std::move(reader));
    end = header.table[i].offset + header.table[i].size;
  }
  Artifact artifact;
  PHIMAP_ASSIGN_OR_RETURN(artifact.provenance, DecodeProvenance(readers[0]));
  artifact.plan.arithmetic = header.arithmetic;
  PHIMAP_RETURN_IF_ERROR(
      DecodePlan(header.serving_type, readers[1], readers[2], readers[3], artifact.plan));
  artifact.certificate = std::string(BytesOf(bytes, header.Of(kCertificate)));
  PHIMAP_RETURN_IF_ERROR(DecodeOptionalSections(bytes, header, artifact));
  return artifact;
}

}  // namespace phimap
