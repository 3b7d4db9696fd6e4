# The service and `tdoc`, with production dependencies only. docs/operations.md explains how to run it.

FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY cli/package.json cli/tdoc.cjs cli/
RUN npm ci
COPY . .
RUN npm run build

FROM node:24-slim
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data ENV_FILE=/dev/null
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY cli/ cli/
RUN npm ci --omit=dev && npm cache clean --force
COPY contexts/ contexts/
COPY --from=build /app/dist/ dist/
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 3000
HEALTHCHECK --start-period=60s CMD ["node", "-e", "fetch('http://127.0.0.1:3000/health').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Started without a shell and npm, so that signals reach the service and it can finish its open work.
CMD ["node", "dist/service/main.js"]
