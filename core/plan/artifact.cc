#include "core/plan/artifact.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/plan/byte_codec.h"
#include "core/plan/column_names.h"
#include "core/plan/plan_codec.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

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
  kDriftReference = 7
};
// Names of sections in docs/formats.md.
constexpr std::array<absl::string_view, kDriftReference> kSectionNames = {
    "provenance",  "input stage",  "feature stage",  "projection stage",
    "certificate", "column names", "drift reference"};
// Number of sections that every artifact has, and number that the longest table holds. Kind 8 is
// reserved for a head.
constexpr size_t kFewestSections = 5;
constexpr size_t kMostSections = 8;

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
  writer.Text(provenance.mapping_text);
  writer.Text(provenance.kernel_text);
  writer.Number<uint8_t>(provenance.standardize ? 1 : 0);
  writer.Number<uint64_t>(provenance.seed);
  return out;
}

absl::StatusOr<Provenance> DecodeProvenance(ByteReader reader) {
  Provenance provenance;
  provenance.mapping_text = reader.Text(kMaxTextBytes);
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

// Returns the oldest format that can hold the artifact.
uint32_t FormatOf(const Artifact& artifact) {
  if (!artifact.drift_reference.empty()) return kArtifactFormat;
  return artifact.provenance.column_names.empty() ? kFormatWithoutNames : kFormatOfNames;
}

void EncodeHeader(const Header& header, std::string& out) {
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
  std::copy_n(head.data(), head.size(), out.data());
  std::copy_n(table.data(), table.size(), out.data() + head.size());
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
  return MakeError(absl::StatusCode::kUnimplemented, "FORMAT_UNKNOWN", "",
                   absl::StrCat("the artifact has ", what, " ", got, ", but this build knows only ",
                                what, "s up to ", known, "; a newer phimap wrote the artifact"));
}

// Checks the kind of section i. The first five sections are those of every artifact. After these,
// format 2 has column names, and format 3 any optional sections, in rising order.
absl::Status CheckKind(const Header& header, size_t i, ByteReader& reader) {
  const uint32_t kind = header.table[i].kind;
  const uint32_t least =
      i < kFewestSections ? static_cast<uint32_t>(i) + 1 : header.table[i - 1].kind + 1;
  const bool exact = i < kFewestSections || header.format == kFormatOfNames;
  if (!exact && kind > kSectionNames.size()) return Unknown("section", kind, kSectionNames.size());
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
    reader.CheckRange("section size", header.table[i].size, 0, size_limit - expected_offset);
    PHIMAP_RETURN_IF_ERROR(reader.status());
    expected_offset += header.table[i].size;
  }
  // An artifact has one form: the oldest format that can hold it.
  if (header.format == kArtifactFormat && header.Of(kDriftReference).size == 0) {
    reader.Fail("the artifact has format 3 but no section that needs it");
  }
  header.end = expected_offset;
  return reader.status();
}

// Checks that the header has a number of sections that its format may have.
void CheckSectionCount(uint32_t sections, const Header& header, ByteReader& reader) {
  if (header.format == kArtifactFormat) {
    reader.CheckRange("sections", sections, int64_t{kFewestSections} + 1, int64_t{kMostSections});
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
      absl::StatusCode::kInvalidArgument, "COLUMN_NAMES_INVALID", "column_names",
      absl::StrCat("expected no names, or ", plan.input_columns(),
                   " names, one for each column; got ", count),
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
  if (!artifact.drift_reference.empty()) {
    sections.emplace_back(kDriftReference, artifact.drift_reference);
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

// Decodes the optional sections, whose checksums are right.
absl::Status DecodeOptionalSections(absl::string_view bytes, const Header& header,
                                    Artifact& artifact) {
  artifact.drift_reference = std::string(BytesOf(bytes, header.Of(kDriftReference)));
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
  const auto sections = EncodeSections(artifact);
  Header header{.format = FormatOf(artifact),
                .sections = sections.size(),
                .arithmetic = artifact.plan.arithmetic,
                .serving_type = artifact.plan.serving_type(),
                .table = {}};
  std::string out(static_cast<size_t>(TableEnd(header.sections)), '\0');
  for (size_t i = 0; i < header.sections; ++i) {
    const auto& [kind, bytes] = sections[i];
    ByteWriter(out).AlignTo(kSectionAlignment);
    header.table[i] = {kind, static_cast<int64_t>(out.size()), static_cast<int64_t>(bytes.size()),
                       Crc32c(bytes)};
    out.append(bytes);
    if (static_cast<int64_t>(out.size()) > kMaxArtifactBytes) {
      return MakeError(absl::StatusCode::kResourceExhausted, "ARTIFACT_TOO_LARGE", "",
                       absl::StrCat("the artifact takes more than ", kMaxArtifactBytes,
                                    " bytes; use fewer landmarks or dimensions"));
    }
  }
  EncodeHeader(header, out);
  return out;
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
  if (!header.Has(kColumnNames)) return facts;
  PHIMAP_ASSIGN_OR_RETURN(const std::string names_section, ReadSection(read, names));
  PHIMAP_ASSIGN_OR_RETURN(facts.provenance.column_names,
                          DecodeColumnNames(names_section, names.offset));
  return facts;
}

absl::StatusOr<std::string> ReadDriftReference(
    int64_t size_bytes, const ArtifactRange& read,
    const std::function<absl::Status(int64_t bytes)>& charge) {
  PHIMAP_ASSIGN_OR_RETURN(const Header header, ReadHeader(size_bytes, read));
  if (!header.Has(kDriftReference)) return std::string();
  const TableEntry entry = header.Of(kDriftReference);
  if (charge) PHIMAP_RETURN_IF_ERROR(charge(entry.size));
  return ReadSection(read, entry);
}

absl::StatusOr<Artifact> DecodeArtifact(absl::string_view bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (size > kMaxArtifactBytes) {
    return DamagedArtifact(0, absl::StrCat("the artifact has ", size, " bytes; at most ",
                                           kMaxArtifactBytes, " are allowed"));
  }
  PHIMAP_ASSIGN_OR_RETURN(const Header header, DecodeHeader(bytes, size));
  PHIMAP_RETURN_IF_ERROR(CheckEnd(header, size));
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
