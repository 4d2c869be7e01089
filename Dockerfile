# Images for unattended agents: cuggino, the claude CLI and a language.
#
#   docker build --target python -t cuggino:python .
#
# base     cuggino, git, curl: a base for your own images; the default
# node     also Node, npm, the claude CLI, and the libraries of Playwright's Chromium
# python   node, and Python with pip, venv and uv
# golang   node, and Go
# ruby     node, and Ruby with Bundler
#
# Debian, not Alpine: cuggino's shell parser has no build for musl. cuggino runs on Debian's own
# Python in /opt/cuggino, independent of the versions below. cuggino is the last layer of each
# target, so that a change of it keeps the large layers.
#
# The user is set by name, because its ids are arguments:
# hadolint global ignore=DL3066

ARG DEBIAN=bookworm
ARG NODE_VERSION=24
ARG PYTHON_VERSION=3.13
ARG GOLANG_VERSION=1.27
ARG RUBY_VERSION=3.4

# The languages, from their official images.
FROM node:${NODE_VERSION}-${DEBIAN}-slim AS node-image
FROM python:${PYTHON_VERSION}-slim-${DEBIAN} AS python-image
FROM golang:${GOLANG_VERSION}-${DEBIAN} AS golang-image
FROM ruby:${RUBY_VERSION}-slim-${DEBIAN} AS ruby-image


FROM debian:${DEBIAN}-slim AS system
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# tini is process 1, which has to reap orphaned processes. bubblewrap confines roles where the
# container allows namespaces; Landlock, which needs no package, takes its place elsewhere.
# Versions are not pinned: Debian removes fixed versions.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        bash bubblewrap ca-certificates curl git less openssh-client procps python3 python3-venv tini \
    && rm -rf /var/lib/apt/lists/*
# The user's ids should be those of the owner of the mounted project.
ARG USER_ID=1000
ARG GROUP_ID=1000
RUN groupadd --non-unique --gid "${GROUP_ID}" cuggino \
    && useradd --non-unique --uid "${USER_ID}" --gid "${GROUP_ID}" --create-home \
        --shell /bin/bash cuggino \
    && install -d -o cuggino -g cuggino \
        /workspace /home/cuggino/.claude /tmp/playwright-browsers \
    && ln -s /opt/cuggino/bin/cuggino /usr/local/bin/cuggino \
    && git config --system --add safe.directory /workspace
# PLAYWRIGHT_MCP_BROWSER: Chrome, the default, is not available for Linux on ARM64 and needs user
# namespaces, which containers rarely allow; Chromium does not.
ENV DISABLE_AUTOUPDATER=1 \
    LANG=C.UTF-8 \
    NPM_CONFIG_UPDATE_NOTIFIER=false \
    PATH=/home/cuggino/.local/bin:${PATH} \
    PLAYWRIGHT_BROWSERS_PATH=/tmp/playwright-browsers \
    PLAYWRIGHT_MCP_BROWSER=chromium
WORKDIR /workspace
ENTRYPOINT ["tini", "--", "cuggino"]
CMD ["--help"]


FROM system AS build
WORKDIR /source
# Dependencies first: they change less often than cuggino.
RUN python3 -m venv /opt/cuggino
COPY pyproject.toml README.md LICENSE ./
COPY cuggino/_version.py cuggino/
RUN mkdir cuggino_cli \
    && /opt/cuggino/bin/pip install --no-cache-dir '.[chat,cluster,copilot,deliver,notify,otel]' \
    && /opt/cuggino/bin/pip uninstall --yes cuggino
COPY cuggino cuggino
COPY cuggino_cli cuggino_cli
RUN /opt/cuggino/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && /opt/cuggino/bin/pip install --no-cache-dir --no-index --no-deps /wheels/*.whl \
    && /opt/cuggino/bin/cuggino --version


FROM system AS agent
COPY --from=node-image /usr/local/bin/node /usr/local/bin/
COPY --from=node-image /usr/local/include/node /usr/local/include/node
COPY --from=node-image /usr/local/lib/node_modules /usr/local/lib/node_modules
ARG CLAUDE_VERSION=2.1.329
ARG PLAYWRIGHT_MCP_VERSION=0.0.83
# npm verifies checksums of its downloads. The browser is not part of the image.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libatomic1 \
    && ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
    && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx \
    && npm install --global --no-audit --no-fund "@anthropic-ai/claude-code@${CLAUDE_VERSION}" \
    && claude --version \
    && npx --yes --package "@playwright/mcp@${PLAYWRIGHT_MCP_VERSION}" \
        playwright install-deps chromium \
    && npm cache clean --force \
    && rm -rf ~/.npm /var/lib/apt/lists/*
# `npm install --global` installs into the user's home.
ENV NPM_CONFIG_PREFIX=/home/cuggino/.local


FROM agent AS node
COPY --from=build /opt/cuggino /opt/cuggino
USER cuggino


FROM agent AS python
COPY --from=python-image /usr/local /usr/local
ARG UV_VERSION=0.13.9
RUN ldconfig \
    && python3 -m pip install --no-cache-dir "uv==${UV_VERSION}" \
    && python3 -c 'import bz2, ctypes, lzma, readline, sqlite3, ssl, venv, zlib'
COPY --from=build /opt/cuggino /opt/cuggino
USER cuggino


FROM agent AS golang
# For cgo, and so for `go test -race`.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev make \
    && rm -rf /var/lib/apt/lists/*
COPY --from=golang-image /usr/local/go /usr/local/go
ENV PATH=/home/cuggino/go/bin:/usr/local/go/bin:${PATH} \
    GOTOOLCHAIN=local
RUN go version
COPY --from=build /opt/cuggino /opt/cuggino
USER cuggino


FROM agent AS ruby
# For gems with native extensions.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        gcc g++ libffi-dev libgmp-dev libssl-dev libyaml-dev make zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*
COPY --from=ruby-image /usr/local /usr/local
ENV GEM_HOME=/home/cuggino/.gem \
    PATH=/home/cuggino/.gem/bin:${PATH}
RUN ldconfig \
    && ruby -e 'require "openssl"; require "yaml"; require "zlib"; require "fiddle"' \
    && bundle --version
COPY --from=build /opt/cuggino /opt/cuggino
USER cuggino


# The last stage is the default target.
FROM system AS base
COPY --from=build /opt/cuggino /opt/cuggino
USER cuggino
