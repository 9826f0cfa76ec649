# phimapd in a container. Build: docker build -t phimap .    Run: docker run -p 7450:7450 -v phimap:/data phimap
FROM debian:bookworm-slim AS build
WORKDIR /src
COPY tools/setup tools/setup
RUN tools/setup
COPY . .
RUN cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DPHIMAP_TESTS=OFF \
 && cmake --build build --target phimapd phimap \
 && strip build/server/phimapd build/client/cli/phimap

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      libgrpc++1.51 libprotobuf32 libabsl20220623 libopenblas0-pthread liblapacke libhwy1 libsqlite3-0 libssl3 \
      libprometheus-cpp-core1.0 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 7450 phimap \
 && install -d -o phimap /data
COPY --from=build /src/build/server/phimapd /src/build/client/cli/phimap /usr/local/bin/
USER phimap
VOLUME /data
EXPOSE 7450 7451
# A container's own interface is not the loopback: whoever publishes the ports decides who reaches them.
ENTRYPOINT ["phimapd", "--data_dir=/data", "--listen=0.0.0.0:7450", "--http=0.0.0.0:7451", "--insecure"]
