/* Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
   SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A library with the standard binary interface of MPI 5 on top of MPICH.
   Handles of another interface end the program. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;
/* MPI 5.0, chapter 20. */
#define COMM_WORLD ((Handle)0x101)
#define REQUEST_NULL ((Handle)0x180)
#define BYTE ((Handle)0x247)
typedef struct {
  int source, tag, error, internal[5];
} Status;

enum { mpichWorld = 0x44000000, mpichByte = 0x4c00010d };

static void *find(const char *name) {
  static void *library;
  if (!library)
    library = dlopen("libmpich.so.12", RTLD_NOW | RTLD_GLOBAL);
  void *address = library ? dlsym(library, name) : NULL;
  if (!address) {
    fprintf(stderr, "MPICH has no %s\n", name);
    exit(99);
  }
  return address;
}

static int world(Handle comm) {
  if (comm != COMM_WORLD) {
    fprintf(stderr, "%p is no communicator of the standard\n", comm);
    exit(99);
  }
  return mpichWorld;
}

static int type(Handle datatype) {
  if (datatype != BYTE) {
    fprintf(stderr, "%p is no byte of the standard\n", datatype);
    exit(99);
  }
  return mpichByte;
}

static Handle fromMpich(int request) {
  return (Handle)(uintptr_t)(uint32_t)request;
}

int MPI_Abi_get_version(int *major, int *minor) {
  *major = 1;
  *minor = 0;
  return 0;
}

int MPI_Get_library_version(char *version, int *length) {
  strcpy(version, "standard interface on MPICH");
  *length = (int)strlen(version);
  return 0;
}

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *given) {
  return ((int (*)(int *, char ***, int, int *))find("MPI_Init_thread"))(
      argc, argv, wanted, given);
}

int MPI_Finalize(void) {
  /* Says that the ranks went through here. */
  if (getenv("STANDARD_ABI_NOTES"))
    fputs("through the standard interface\n", stderr);
  return ((int (*)(void))find("MPI_Finalize"))();
}

int MPI_Abort(Handle comm, int code) {
  return ((int (*)(int, int))find("MPI_Abort"))(world(comm), code);
}

int MPI_Comm_rank(Handle comm, int *rank) {
  return ((int (*)(int, int *))find("MPI_Comm_rank"))(world(comm), rank);
}

int MPI_Comm_size(Handle comm, int *size) {
  return ((int (*)(int, int *))find("MPI_Comm_size"))(world(comm), size);
}

int MPI_Isend(const void *data, int count, Handle datatype, int to, int tag,
              Handle comm, Handle *request) {
  int own;
  int result = ((int (*)(const void *, int, int, int, int, int, int *))find(
      "MPI_Isend"))(data, count, type(datatype), to, tag, world(comm), &own);
  *request = fromMpich(own);
  return result;
}

int MPI_Irecv(void *data, int count, Handle datatype, int from, int tag,
              Handle comm, Handle *request) {
  int own;
  int result = ((int (*)(void *, int, int, int, int, int, int *))find(
      "MPI_Irecv"))(data, count, type(datatype), from, tag, world(comm), &own);
  *request = fromMpich(own);
  return result;
}

int MPI_Test(Handle *request, int *done, Status *status) {
  int own = (int)(uintptr_t)*request;
  char mpichStatus[64];
  int result = ((int (*)(int *, int *, void *))find("MPI_Test"))(&own, done,
                                                                 mpichStatus);
  if (*done) {
    *request = REQUEST_NULL;
    memset(status, 0, sizeof *status);
  }
  return result;
}
