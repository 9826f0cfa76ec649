# Writes the files of a folder as arrays of bytes, plain and compressed, for server/http/page_files.cc.
#
#   cmake -DFOLDER=server/http/page -DOUTPUT=page_files.inc -P embed_page.cmake
file(GLOB FILES ${FOLDER}/*)
set(ARRAYS "")
set(TABLE "")
set(NUMBER 0)

# Appends an array with the bytes of a hexadecimal text to ARRAYS.
macro(append_array NAME HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," BYTES "${HEX}")
  string(REGEX REPLACE "((......,){16})" "\\1\n" BYTES "${BYTES}")
  string(APPEND ARRAYS "constexpr char ${NAME}[] = {\n${BYTES}};\n")
endmacro()

foreach(FILE ${FILES})
  get_filename_component(NAME ${FILE} NAME)
  file(READ ${FILE} PLAIN HEX)
  file(SHA256 ${FILE} DIGEST)
  file(ARCHIVE_CREATE OUTPUT ${OUTPUT}.gz PATHS ${FILE} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
  file(READ ${OUTPUT}.gz ZIPPED HEX)
  file(REMOVE ${OUTPUT}.gz)
  # The same sources give the same program: bytes 4 to 7 of a gzip file are the time at which it was made.
  string(SUBSTRING ${ZIPPED} 0 8 HEAD)
  string(SUBSTRING ${ZIPPED} 16 -1 REST)
  append_array(kPlain${NUMBER} ${PLAIN})
  append_array(kZipped${NUMBER} ${HEAD}00000000${REST})
  string(APPEND TABLE "    {\"/page/${NAME}\", {kPlain${NUMBER}, sizeof(kPlain${NUMBER})}, "
    "{kZipped${NUMBER}, sizeof(kZipped${NUMBER})}, \"${DIGEST}\"},\n")
  math(EXPR NUMBER "${NUMBER} + 1")
endforeach()
file(WRITE ${OUTPUT} "${ARRAYS}constexpr EmbeddedFile kPageFiles[] = {\n${TABLE}};\n")
