# The service and `tdoc`, with production dependencies only. docs/operations.md explains how to run it.

FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY cli/package.json cli/tdoc.cjs cli/
RUN npm ci
COPY . .
RUN npm run build

# The addon that asks PKCS #11 modules: it needs a compiler.
FROM node:24 AS addon
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY cli/package.json cli/tdoc.cjs cli/
RUN npm ci && npm rebuild pkcs11js --ignore-scripts=false

FROM node:24-slim AS service
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data ENV_FILE=/dev/null
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY cli/ cli/
RUN npm ci --omit=dev && npm cache clean --force
COPY contexts/ contexts/
COPY evidence/evidence-page.html evidence/
COPY --from=build /app/dist/ dist/
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 3000
HEALTHCHECK --start-period=60s CMD ["node", "-e", "fetch('http://127.0.0.1:3000/health').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Started without a shell and npm, so that signals reach the service and it can finish its open work.
CMD ["node", "dist/service/main.js"]

# `docker build --target pkcs11` makes an image that asks a module, whose library has to be added.
FROM service AS pkcs11
COPY --from=addon /app/node_modules/pkcs11js node_modules/pkcs11js

FROM service
