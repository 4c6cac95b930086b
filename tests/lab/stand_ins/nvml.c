/* STAND-IN for libnvidia-ml.so.1: lists eight GPUs that are not there.
 * gcc -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 nvml.c
 * Structures and return codes follow nvml.h. */
#include <stdio.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, COUNT = 8 };
typedef struct {
    unsigned long long total, free, used;
} memory;
typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_info;

static long index_of(void *device) { return (long)device - 1; }

int nvmlInit_v2(void) { return SUCCESS; }
int nvmlInitWithFlags(unsigned flags) { return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { return code == SUCCESS ? "Success" : "Unknown Error"; }

int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    snprintf(text, length, "580.95.05");
    return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    *version = 13000;
    return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = COUNT;
    return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if (index >= COUNT)
        return INVALID_ARGUMENT;
    *device = (void *)((long)index + 1);
    return SUCCESS;
}
int nvmlDeviceGetName(void *device, char *text, unsigned length) {
    snprintf(text, length, "NVIDIA RTX PRO 6000 Blackwell Server Edition");
    return SUCCESS;
}
int nvmlDeviceGetUUID(void *device, char *text, unsigned length) {
    snprintf(text, length, "GPU-00000000-0000-0000-0000-%012ld", index_of(device));
    return SUCCESS;
}
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    *major = 12;
    *minor = 0;
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(void *device, memory *info) {
    info->total = 96ULL << 30;
    info->used = 1ULL << 30;
    info->free = 95ULL << 30;
    return SUCCESS;
}
int nvmlDeviceGetPciInfo_v3(void *device, pci_info *info) {
    info->domain = 0;
    info->bus = 0x10 + (unsigned)index_of(device);
    info->device = 0;
    info->pci_device_id = 0x2bb510de;
    info->pci_subsystem_id = 0;
    snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "0000:%02x:00.0", info->bus);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus);
    return SUCCESS;
}

/* What the GPUs do. With -DSPINNING the first two are as in a collective that never ends: always in use, their memory
 * idle, little power; the others are not used. The process on them is that of -DOWNER. */
#ifndef OWNER
#define OWNER 0
#endif
typedef struct {
    unsigned gpu, memory;
} utilization;
typedef struct {
    unsigned pid;
    unsigned long long used;
    unsigned instance, compute_instance;
} process_info;

static int spins(void *device) {
#ifdef SPINNING
    return index_of(device) < 2;
#else
    return 0;
#endif
}
int nvmlDeviceGetUtilizationRates(void *device, utilization *rates) {
    rates->gpu = spins(device) ? 100 : 0;
    rates->memory = 0;
    return SUCCESS;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    *milliwatts = spins(device) ? 185000 : 60000;
    return SUCCESS;
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
    *milliwatts = 600000;
    return SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_info *infos) {
    *count = OWNER && spins(device) ? 1 : 0;
    if (*count) {
        infos->pid = OWNER;
        infos->used = 1ULL << 30;
        infos->instance = infos->compute_instance = 0xFFFFFFFF;
    }
    return SUCCESS;
}
