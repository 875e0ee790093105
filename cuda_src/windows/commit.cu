// Tours laid anew: what the host has decided about exchanges is carried out on the device.

extern "C" __global__ void lay_out(
    int n, const int* begins,  // (tours + 1,) segments of tour t are begins[t] .. begins[t + 1] - 1
    const int4* segments,      // place in the new tour, first position in the old, count, 1 or -1; ascending places
    const int* old_tours, int* new_tours, int* positions) {  // (tours, n)
    const int place = blockIdx.x * blockDim.x + threadIdx.x, which = blockIdx.y;
    if (place >= n) return;
    const size_t offset = static_cast<size_t>(which) * n;
    int low = begins[which], high = begins[which + 1] - 1;
    int city;
    if (high < low) {
        city = old_tours[offset + place];  // nothing changed
    } else {
        while (low < high) {
            const int middle = (low + high + 1) >> 1;
            if (segments[middle].x <= place)
                low = middle;
            else
                high = middle - 1;
        }
        const int4 s = segments[low];
        const int along = place - s.x;
        int from = s.w > 0 ? s.y + along : s.y + s.z - 1 - along;
        if (from >= n) from -= n;
        city = old_tours[offset + from];
    }
    new_tours[offset + place] = city;
    positions[offset + city] = place;
}
