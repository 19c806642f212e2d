# Two stages: build a wheel and what it needs, then install those into a small image.
#
#   docker build -t amqpgate:0.2.0 .
#   docker run --rm amqpgate:0.2.0 --version
#   docker run --rm --read-only -p 5672:5672 -v "$PWD/amqpgate.yaml:/etc/amqpgate/amqpgate.yaml:ro" amqpgate:0.2.0
#
# What OAuth needs is in it. With what Parquet records need, or the jobs over them: --build-arg EXTRAS=audit,oauth,
# EXTRAS=pipeline,oauth. With nothing beside: EXTRAS= .

# Not slim: the data path is compiled here, and the image with the compiler stays behind.
FROM python:3.11 AS build
ARG EXTRAS=oauth
WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE tools/uv.txt ./
COPY src ./src
COPY spec/schema ./spec/schema
# Everything that is fetched has the version and the hash that are pinned; of what compiles the data path, too.
RUN python -m pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes --target /uv -r uv.txt
ENV PATH=/uv/bin:$PATH
RUN uv venv --quiet --python "$(command -v python)" /opt/amqpgate \
 && uv pip install --quiet --no-cache --compile-bytecode --python /opt/amqpgate/bin/python \
      --constraints constraints.txt --build-constraints constraints.txt ".${EXTRAS:+[$EXTRAS]}" \
 && /opt/amqpgate/bin/python -c 'from amqpgate.datapath.build import COMPILED; assert COMPILED, "the data path is not compiled"' \
 && /opt/amqpgate/bin/python -c 'import amqpgate.gateway.transport._translation, amqpgate.protocol.v0_10._frames, amqpgate.bridge.v0_10._codec, amqpgate.bridge.v0_10.native._native'

FROM python:3.11-slim
ARG REVISION=unknown
LABEL org.opencontainers.image.title="amqpgate" \
      org.opencontainers.image.description="A transparent AMQP gateway: policy, audit and throttling between clients and brokers." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="amqpgate contributors" \
      org.opencontainers.image.url="https://github.com/amqpgate/amqpgate" \
      org.opencontainers.image.source="https://github.com/amqpgate/amqpgate" \
      org.opencontainers.image.documentation="https://github.com/amqpgate/amqpgate/tree/main/docs" \
      org.opencontainers.image.base.name="docker.io/library/python:3.11-slim" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.version="0.2.0"
# A number, so that Kubernetes can see that it is not root; a name for libraries that ask for one.
RUN ["useradd", "--uid", "10001", "--user-group", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", "amqpgate"]
COPY --from=build /opt/amqpgate /opt/amqpgate
ENV PATH=/opt/amqpgate/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Ports are above 1024, nothing is written, no shell is needed.
USER 10001:10001
EXPOSE 5672 15680 15681
# Needs `admin: {}` in the settings; without it, start the container with --no-healthcheck. A check takes half a
# second of CPU, so not more often.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["amqpgate", "health", "--timeout", "3"]
ENTRYPOINT ["amqpgate"]
CMD ["run", "--config", "/etc/amqpgate/amqpgate.yaml", "--log-format", "json"]
