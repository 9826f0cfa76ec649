# Writes the bytes of the file IN to OUT as a string literal of C++ and, behind a comma, their number.
file(READ ${IN} DIGITS HEX)
file(SIZE ${IN} SIZE)
string(REGEX REPLACE "(..)" "\\\\x\\1" BYTES "${DIGITS}")
file(WRITE ${OUT} "\"${BYTES}\", ${SIZE}\n")
