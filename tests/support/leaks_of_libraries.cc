// What LeakSanitizer leaves out in the programs that are gRPC clients.
//
// OpenSSL keeps the errors of a thread in memory that it frees when the thread ends. It forgets
// this memory when the process begins to end, and a thread of gRPC's pool may end after that and
// before the sanitizer looks. The library is built without frame pointers, so that the allocation
// has no other caller by which it could be named.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:CRYPTO_zalloc\n"; }
