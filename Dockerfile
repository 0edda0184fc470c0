# The server in a container; see docs/container.md.

# The wheel: Rust and maturin, on the same Debian as the image below, so that its C library fits.
FROM rust:1.95.0-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/build && /opt/build/bin/pip install --no-cache-dir maturin==1.16.0
WORKDIR /source
COPY Cargo.toml Cargo.lock LICENSE README.md pyproject.toml ./
COPY crates crates
COPY python python
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    /opt/build/bin/maturin build --release --compatibility linux --out /wheels

# The packages that it needs, in the versions that are tested, and nothing to build with.
FROM python:3.13.9-slim-bookworm AS packages
COPY requirements.lock /tmp/
COPY --from=build /wheels /wheels
# Hashes are left out: a wheel that was just built has none there.
RUN grep -E '^[A-Za-z0-9]' /tmp/requirements.lock | sed 's/ *\\$//' > /tmp/constraints.txt \
    && python -m venv /opt/tardis-fast \
    && /opt/tardis-fast/bin/pip install --no-cache-dir --constraint /tmp/constraints.txt /wheels/*.whl

FROM python:3.13.9-slim-bookworm
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin tardis \
    && install --directory --owner tardis --group tardis /var/cache/tardis-fast /var/lib/tardis-fast
COPY --from=packages /opt/tardis-fast /opt/tardis-fast
ENV PATH=/opt/tardis-fast/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    TM_HOST=0.0.0.0 \
    TM_PORT=8000 \
    TM_CACHE_DIR=/var/cache/tardis-fast \
    TM_STATE_DIR=/var/lib/tardis-fast
USER tardis
VOLUME ["/var/cache/tardis-fast", "/var/lib/tardis-fast"]
EXPOSE 8000 8001
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['TM_PORT'] + '/health-check', timeout=4)"]
ENTRYPOINT ["tardis-fast"]
CMD ["serve"]
