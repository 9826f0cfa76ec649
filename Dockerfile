# phimapd and phimap in a container: Debian slim, not root, nothing written outside of /data.
#
#   docker build -t phimap .
#   docker run --read-only -p 127.0.0.1:7450:7450 -v phimap:/data phimap --insecure
#
# What follows the image's name is flags of phimapd. In a container it listens on all of the container's interfaces, for
# which it wants --insecure: right where nobody else can reach the published ports. With the flags of TLS beside it the
# API is encrypted, and --insecure stands for /metrics alone.
# docs/operations/run.md, "Container", says more; deploy/compose.single.yaml adds Prometheus and Grafana.
#
# A tag may name another base tomorrow. --build-arg BASE=debian:bookworm-slim@sha256:... names one for good, and the image's
# label org.opencontainers.image.base.name says which was used.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
WORKDIR /src
COPY tools/setup tools/setup
RUN tools/setup --build
COPY . .
RUN --mount=type=cache,target=/ccache \
    export CCACHE_DIR=/ccache CCACHE_NOHASHDIR=1 \
 && cmake --preset image \
 && cmake --build build --target phimapd phimap \
 && install -D -s -t /image build/server/phimapd build/client/cli/phimap \
 && tools/runtime_packages /image/phimapd /image/phimap >/image/packages \
 && printf "libpq5\nlibcurl4\n" >>/image/packages

FROM ${BASE}
# The packages of the shared libraries that the two programs load, as ldd found them, libpq, which phimapd loads when it
# is told to (server/store/postgres/libpq.h), and nothing else.
RUN --mount=type=bind,from=build,source=/image,target=/image \
    apt-get update \
 && xargs -a /image/packages env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig/* /var/log/* \
 && groupadd --gid 7450 phimap \
 && useradd --uid 7450 --gid 7450 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin phimap \
 && install -d -o phimap -g phimap -m 0700 /data
COPY --from=build /image/phimapd /image/phimap /usr/local/bin/
ARG BASE
LABEL org.opencontainers.image.base.name=${BASE}
# By number, so that Kubernetes can tell that it is not root.
USER 7450:7450
VOLUME /data
EXPOSE 7450 7451
# SIGTERM drains for --drain_seconds: give the container longer than that to stop (docker run --stop-timeout=30).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["phimap", "health"]
ENTRYPOINT ["phimapd", "--data_dir=/data", "--listen=0.0.0.0:7450", "--http=0.0.0.0:7451"]
