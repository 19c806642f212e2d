# Two stages: build a wheel and what it needs, then install those into a small image.
#
#   docker build -t amqpgate .
#   docker run --rm amqpgate --version
#   docker run --rm -p 5672:5672 -v "$PWD/amqpgate.yaml:/etc/amqpgate/amqpgate.yaml:ro" amqpgate

# Not slim: the data path is compiled here, and the image with the compiler stays behind.
FROM python:3.11 AS build
WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY src ./src
RUN ["python", "-m", "pip", "wheel", "--no-cache-dir", "--constraint", "constraints.txt", "--wheel-dir", "/wheels", "."]
RUN ["python", "-m", "venv", "/opt/amqpgate"]
RUN ["/opt/amqpgate/bin/python", "-m", "pip", "install", "--no-cache-dir", "--no-index", "--find-links", "/wheels", "amqpgate"]

FROM python:3.11-slim
COPY --from=build /opt/amqpgate /opt/amqpgate
ENV PATH=/opt/amqpgate/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# A number, so that Kubernetes can see that it is not root. Ports are above 1024, nothing is written.
USER 10001:10001
EXPOSE 5672 15680
# Needs `admin: {}` in the settings; without it, start the container with --no-healthcheck.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["amqpgate", "health", "--timeout", "3"]
ENTRYPOINT ["amqpgate"]
CMD ["run", "--config", "/etc/amqpgate/amqpgate.yaml", "--log-format", "json"]
