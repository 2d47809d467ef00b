// An operator in JavaScript, with the informer of @kubernetes/client-node: it copies the ConfigMaps with the label copy=me.
import * as k8s from '@kubernetes/client-node';

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const namespace = 'default';
const labelSelector = 'copy=me';

async function reconcile(from) {
  const name = `${from.metadata.name}-copy`;
  try {
    await core.readNamespacedConfigMap({ namespace, name });
  } catch (e) {
    if (e.code !== 404) throw e;
    await core.createNamespacedConfigMap({ namespace, body: { metadata: { name } } });
  }
}

const again = (o) => reconcile(o).catch((e) => console.log('failed:', e.message));
const list = () => core.listNamespacedConfigMap({ namespace, labelSelector });
const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, list, labelSelector);
informer.on('add', again);
informer.on('update', again);
informer.on('error', () => setTimeout(() => informer.start(), 1000));
await informer.start();
