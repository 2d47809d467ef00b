# Writes the stranger's project into the folder bulletin, where it is there at once and whole: the lab builds what it finds.
set -e
cd "$LESSON_DIR"
operator-lab new operator bulletin --dir .new
cd .new/bulletin
rm -r README.md scenarios controller/controller_test.go api/v1alpha1/deepcopy.go
cp ../../types.go.txt api/v1alpha1/types.go
cp ../../stranger.go.txt controller/controller.go
cp ../../bulletins-crd.yaml config/crd/bases/example.com_bulletins.yaml
cp ../../monday.yaml config/samples/bulletin.yaml
sed -i 's/\[apps\]/[""]/; s/\[deployments\]/[configmaps]/; s/\[get, patch\]/[get, update]/' config/default/rbac.yaml
cd ../..
mv .new/bulletin .
rmdir .new
