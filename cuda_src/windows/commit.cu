// Tours laid anew: what the host has decided about exchanges is carried out on the device.

extern "C" __global__ void lay_out(
    int n, int tours,
    const int* begins, const int* counts,  // (tours,) the segments of each tour
    const int4* segments,  // place in the new tour (ascending), position in the old where it is entered, count, 1 or -1
    const int* old_tours, int* new_tours, int* positions) {  // (tours, n)
    const size_t index = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= static_cast<size_t>(tours) * n) return;
    const int which = static_cast<int>(index / n), place = static_cast<int>(index % n);
    const size_t offset = static_cast<size_t>(which) * n;
    int low = begins[which], high = low + counts[which] - 1;
    while (low < high) {
        const int middle = (low + high + 1) >> 1;
        if (segments[middle].x <= place)
            low = middle;
        else
            high = middle - 1;
    }
    const int4 s = segments[low];
    int from = s.y + s.w * (place - s.x);
    if (from >= n) from -= n;
    if (from < 0) from += n;
    const int city = old_tours[offset + from];
    new_tours[offset + place] = city;
    positions[offset + city] = place;
}
