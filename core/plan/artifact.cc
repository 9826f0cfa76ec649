#include "core/plan/artifact.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/plan/byte_codec.h"
#include "core/plan/column_names.h"
#include "core/plan/crc32c.h"
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

// Sections in the order of the file.
enum Section : uint32_t {
  kProvenance = 1,
  kInput = 2,
  kFeatures = 3,
  kProjection = 4,
  kCertificate = 5,
  // Present in kArtifactFormat only.
  kColumnNames = 6
};
constexpr std::array<Section, 6> kSections = {kProvenance, kInput,       kFeatures,
                                              kProjection, kCertificate, kColumnNames};
// Names of sections in docs/formats.md.
constexpr std::array<absl::string_view, kSections.size()> kSectionNames = {
    "provenance",       "input stage", "feature stage",
    "projection stage", "certificate", "column names"};
// Number of sections of kFormatWithoutNames.
constexpr size_t kFewestSections = 5;

// Returns the end of the section table.
constexpr int64_t TableEnd(size_t sections) {
  return kHeaderBytes + kTableEntryBytes * static_cast<int64_t>(sections);
}
static_assert(TableEnd(kSections.size()) == kArtifactHeadBytes);

constexpr int64_t Aligned(int64_t offset) {
  return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}
// Every artifact is longer than the longest head, so kArtifactHeadBytes can always be read.
static_assert(Aligned(TableEnd(kFewestSections)) >= kArtifactHeadBytes);

struct TableEntry {
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
  // Number of sections: kFewestSections, or all.
  size_t sections = 0;
  uint32_t arithmetic = 0;
  FloatType serving_type = FloatType::kFloat32;
  std::array<TableEntry, kSections.size()> table;
  // End of the last section, and of the artifact.
  int64_t end = 0;
};

void EncodeHeader(const Header& header, std::string& out) {
  std::string head;
  ByteWriter writer(head);
  writer.Numbers(kMagic.data(), kMagic.size());
  writer.Number<uint32_t>(header.sections == kFewestSections ? kFormatWithoutNames
                                                             : kArtifactFormat);
  writer.Number<uint32_t>(header.arithmetic);
  writer.Number<uint32_t>(static_cast<uint32_t>(header.serving_type));
  writer.Number<uint32_t>(static_cast<uint32_t>(header.sections));
  writer.Number<uint32_t>(0);  // reserved
  std::string table;
  ByteWriter table_writer(table);
  for (size_t i = 0; i < header.sections; ++i) {
    table_writer.Number<uint32_t>(kSections[i]);
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

// Reads the table of header.sections sections, which follow each other without gaps.
absl::Status ReadTable(ByteReader& reader, int64_t size_limit, Header& header) {
  int64_t expected_offset = TableEnd(header.sections);
  for (size_t i = 0; i < header.sections; ++i) {
    const uint32_t kind = reader.Number<uint32_t>();
    header.table[i].crc = reader.Number<uint32_t>();
    header.table[i].offset = static_cast<int64_t>(reader.Number<uint64_t>());
    header.table[i].size = static_cast<int64_t>(reader.Number<uint64_t>());
    if (kind != kSections[i])
      reader.Fail(absl::StrCat("expected section ", kSections[i], ", got ", kind));
    expected_offset = Aligned(expected_offset);
    reader.CheckRange("section offset", header.table[i].offset, expected_offset, expected_offset);
    reader.CheckRange("section size", header.table[i].size, 0, size_limit - expected_offset);
    PHIMAP_RETURN_IF_ERROR(reader.status());
    expected_offset += header.table[i].size;
  }
  header.end = expected_offset;
  return absl::OkStatus();
}

// Decodes header and table of an artifact that begins with `bytes` and is `size_limit` bytes long
// or shorter.
absl::StatusOr<Header> DecodeHeader(absl::string_view bytes, int64_t size_limit) {
  if (bytes.size() < kHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return DamagedArtifact(0, "this is not a phimap artifact (no magic)");
  }
  ByteReader reader(bytes.substr(kMagic.size()), kMagic.size());
  const uint32_t version = reader.Number<uint32_t>();
  Header header;
  header.arithmetic = reader.Number<uint32_t>();
  const uint32_t serving_type = reader.Number<uint32_t>();
  const uint32_t sections = reader.Number<uint32_t>();
  const uint32_t reserved = reader.Number<uint32_t>();
  const uint32_t crc = reader.Number<uint32_t>();
  if (version < kFormatWithoutNames || version > kArtifactFormat)
    return Unknown("format version", version, kArtifactFormat);
  header.sections = version == kFormatWithoutNames ? kFewestSections : kSections.size();
  if (sections != header.sections)
    reader.Fail(absl::StrCat("expected ", header.sections, " sections, got ", sections));
  if (reserved != 0) reader.Fail("a reserved field is not zero");
  reader.CheckRange("serving type", serving_type, 1, 2);
  if (static_cast<int64_t>(bytes.size()) < kArtifactHeadBytes)
    reader.Fail("the section table is cut off");
  PHIMAP_RETURN_IF_ERROR(reader.status());
  PHIMAP_RETURN_IF_ERROR(CheckHeaderChecksum(bytes, header.sections, crc));
  if (header.arithmetic != kArithmetic)
    return Unknown("arithmetic", header.arithmetic, kArithmetic);
  header.serving_type = static_cast<FloatType>(serving_type);
  PHIMAP_RETURN_IF_ERROR(ReadTable(reader, size_limit, header));
  // In an artifact with fewer sections, zeros follow the table up to kArtifactHeadBytes.
  const int64_t table_end = TableEnd(header.sections);
  ByteReader padding(bytes.substr(table_end, kArtifactHeadBytes - table_end), table_end);
  padding.AlignTo(kArtifactHeadBytes);
  PHIMAP_RETURN_IF_ERROR(padding.status());
  return header;
}

// Checks that `section` has the size and checksum that the table states.
absl::StatusOr<ByteReader> CheckSection(absl::string_view section, const Header& header,
                                        size_t index) {
  const TableEntry& entry = header.table[index];
  const uint32_t actual = Crc32c(section);
  if (actual != entry.crc) {
    return DamagedArtifact(
        entry.offset, absl::StrCat("section ", kSections[index], " (", kSectionNames[index],
                                   ") is damaged: its checksum is ", actual, ", not ", entry.crc));
  }
  return ByteReader(section, entry.offset);
}

// Checks the section's checksum and returns a reader of its bytes.
absl::StatusOr<ByteReader> OpenSection(absl::string_view bytes, const Header& header,
                                       size_t index) {
  const TableEntry& entry = header.table[index];
  return CheckSection(bytes.substr(entry.offset, entry.size), header, index);
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

// Decodes section kColumnNames and checks that the names fit this plan.
absl::StatusOr<std::vector<std::string>> OpenColumnNames(absl::string_view section,
                                                         const Header& header) {
  const TableEntry& entry = header.table[kFewestSections];
  PHIMAP_RETURN_IF_ERROR(CheckSection(section, header, kFewestSections).status());
  return DecodeColumnNames(section, entry.offset);
}

}  // namespace

absl::StatusOr<std::string> EncodeArtifact(const Artifact& artifact) {
  PHIMAP_RETURN_IF_ERROR(artifact.plan.Validate());
  const std::vector<std::string>& names = artifact.provenance.column_names;
  PHIMAP_RETURN_IF_ERROR(CheckNamesOf(artifact.plan, names));
  const std::array<std::string, kSections.size()> sections = {EncodeProvenance(artifact.provenance),
                                                              EncodeInputStage(artifact.plan.input),
                                                              EncodeFeatureStage(artifact.plan),
                                                              EncodeProjectionStage(artifact.plan),
                                                              artifact.certificate,
                                                              EncodeColumnNames(names)};
  Header header{.sections = names.empty() ? kFewestSections : kSections.size(),
                .arithmetic = artifact.plan.arithmetic,
                .serving_type = artifact.plan.serving_type(),
                .table = {}};
  std::string out(static_cast<size_t>(TableEnd(header.sections)), '\0');
  for (size_t i = 0; i < header.sections; ++i) {
    ByteWriter(out).AlignTo(kSectionAlignment);
    header.table[i] = {static_cast<int64_t>(out.size()), static_cast<int64_t>(sections[i].size()),
                       Crc32c(sections[i])};
    out.append(sections[i]);
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
  PHIMAP_ASSIGN_OR_RETURN(const std::string head, ReadExactly(read, 0, kArtifactHeadBytes));
  PHIMAP_ASSIGN_OR_RETURN(const Header header, DecodeHeader(head, size_bytes));
  PHIMAP_RETURN_IF_ERROR(CheckEnd(header, size_bytes));
  constexpr size_t kProvenanceIndex = 0;
  constexpr size_t kCertificateIndex = 4;
  const TableEntry& provenance = header.table[kProvenanceIndex];
  const TableEntry& certificate = header.table[kCertificateIndex];
  const TableEntry& names = header.table[kFewestSections];  // Size 0 if there are none.
  if (charge) PHIMAP_RETURN_IF_ERROR(charge(provenance.size + certificate.size + names.size));
  ArtifactFacts facts;
  PHIMAP_ASSIGN_OR_RETURN(const std::string section,
                          ReadExactly(read, provenance.offset, provenance.size));
  PHIMAP_ASSIGN_OR_RETURN(const ByteReader reader, CheckSection(section, header, kProvenanceIndex));
  PHIMAP_ASSIGN_OR_RETURN(facts.provenance, DecodeProvenance(reader));
  PHIMAP_ASSIGN_OR_RETURN(facts.certificate,
                          ReadExactly(read, certificate.offset, certificate.size));
  PHIMAP_RETURN_IF_ERROR(CheckSection(facts.certificate, header, kCertificateIndex).status());
  if (header.sections == kFewestSections) return facts;
  PHIMAP_ASSIGN_OR_RETURN(const std::string names_section,
                          ReadExactly(read, names.offset, names.size));
  PHIMAP_ASSIGN_OR_RETURN(facts.provenance.column_names, OpenColumnNames(names_section, header));
  return facts;
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
    PHIMAP_ASSIGN_OR_RETURN(ByteReader reader, OpenSection(bytes, header, i));
    readers.push_back(std::move(reader));
    end = header.table[i].offset + header.table[i].size;
  }
  Artifact artifact;
  PHIMAP_ASSIGN_OR_RETURN(artifact.provenance, DecodeProvenance(readers[0]));
  artifact.plan.arithmetic = header.arithmetic;
  PHIMAP_RETURN_IF_ERROR(
      DecodePlan(header.serving_type, readers[1], readers[2], readers[3], artifact.plan));
  artifact.certificate = std::string(bytes.substr(header.table[4].offset, header.table[4].size));
  if (header.sections == kFewestSections) return artifact;
  const TableEntry& names = header.table[kFewestSections];
  PHIMAP_ASSIGN_OR_RETURN(artifact.provenance.column_names,
                          OpenColumnNames(bytes.substr(names.offset, names.size), header));
  if (const absl::Status valid = CheckNamesOf(artifact.plan, artifact.provenance.column_names);
      !valid.ok()) {
    return DamagedArtifact(names.offset, absl::StrCat("column names: ", valid.message()));
  }
  return artifact;
}

}  // namespace phimap
